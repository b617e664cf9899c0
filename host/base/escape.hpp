#pragma once
// Text from outside, made fit to stand on one line of a log, a terminal or an error message.

#include <cstddef>
#include <string>
#include <string_view>

namespace hearth {

enum class EscapeStyle {
  kHuman,  // a malformed byte is shown as \xNN: for people, who want to know which it was
  kJson,   // a malformed byte becomes U+FFFD: the result is the inside of a JSON string
};

// Whether a character would break the line, move a cursor, or make text read other than it is
// stored: control characters (C0, DEL, C1), line and paragraph separators, direction marks.
[[nodiscard]] bool needs_escape(char32_t character) noexcept;

// Appends `text` with \n, \r, \t, \", \\ and \uNNNN for what may not stand as it is. The result is
// valid UTF-8 without a character that needs_escape(), whatever `text` holds.
void append_escaped(std::string& out, std::string_view text, EscapeStyle style);

// The longest start of `text` that has at most `max_bytes` bytes and splits no character.
[[nodiscard]] std::string_view cut_text(std::string_view text, std::size_t max_bytes) noexcept;

// A path is shown whole, as no system call takes a longer one.
inline constexpr std::size_t kMaxShownPath = 4096;

// A path or a name in a sentence, escaped for people: as it is, or in quotes where a space would
// hide its end. So a line of a log, where quotes are escaped, can be read.
[[nodiscard]] std::string show_name(std::string_view name);

// "text" in quotes, escaped for people and cut to `max_bytes` with "..." after the cut.
[[nodiscard]] std::string quote_text(std::string_view text, std::size_t max_bytes = 80);

}  // namespace hearth
