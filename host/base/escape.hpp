#pragma once
// Escapes text from outside for one line of a log, a terminal or an error message.

#include <cstddef>
#include <string>
#include <string_view>

namespace hearth {

enum class EscapeStyle {
  kHuman,  // a malformed byte is shown as \xNN: for people, so that they see which byte it was
  kJson,   // a malformed byte becomes U+FFFD: the result is the inside of a JSON string
};

// Whether a character would break the line, move a cursor, or change how the text around it is
// shown: control characters (C0, DEL, C1), line and paragraph separators, direction marks.
[[nodiscard]] bool needs_escape(char32_t character) noexcept;

// Appends `text`, with \n, \r, \t, \", \\ and \uNNNN for characters that need an escape. The result
// is always valid UTF-8 without a character that needs_escape().
void append_escaped(std::string& out, std::string_view text, EscapeStyle style);

// The longest prefix of `text` that has at most `max_bytes` bytes and splits no character.
[[nodiscard]] std::string_view cut_text(std::string_view text, std::size_t max_bytes) noexcept;

// Paths are shown whole: no system call takes a longer one.
inline constexpr std::size_t kMaxShownPath = 4096;

// A path or a name for a sentence, escaped for people. It gets quotes only where a space would hide
// its end, because a log line escapes quotes.
[[nodiscard]] std::string show_name(std::string_view name);

// "text" in quotes, escaped for people and cut to `max_bytes` with "..." after the cut.
[[nodiscard]] std::string quote_text(std::string_view text, std::size_t max_bytes = 80);

// A word of a command that a person pastes into a POSIX shell: in '...', unless it is plain. It is
// not escaped for a terminal.
[[nodiscard]] std::string shell_word(std::string_view text);

}  // namespace hearth
