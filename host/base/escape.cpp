#include "base/escape.hpp"

#include "base/utf8.hpp"

#include <algorithm>

namespace hearth {
namespace {

// `digits` hexadecimal digits of `value` after `prefix`: \x1b, \u2028.
void append_hex(std::string& out, std::string_view prefix, unsigned value, unsigned digits) {
  constexpr std::string_view kHex = "0123456789abcdef";
  out += prefix;
  for (unsigned i = digits; i > 0; --i) out += kHex[(value >> (4 * (i - 1))) & 0x0FU];
}

void append_character(std::string& out, std::string_view bytes, char32_t c) {
  switch (c) {
    case U'"': out += "\\\""; return;
    case U'\\': out += "\\\\"; return;
    case U'\n': out += "\\n"; return;
    case U'\r': out += "\\r"; return;
    case U'\t': out += "\\t"; return;
    default: break;
  }
  if (needs_escape(c)) {
    append_hex(out, "\\u", static_cast<unsigned>(c), 4);
  } else {
    out += bytes;
  }
}

}  // namespace

bool needs_escape(char32_t c) noexcept {
  if (c < 0x20 || (c >= 0x7F && c <= 0x9F)) return true;
  if (c == 0x2028 || c == 0x2029) return true;                          // line, paragraph separator
  if (c == 0x061C || c == 0x200E || c == 0x200F) return true;           // direction marks
  return (c >= 0x202A && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069);  // embeddings and isolates
}

void append_escaped(std::string& out, std::string_view text, EscapeStyle style) {
  while (!text.empty()) {
    const Utf8Character character = first_utf8_character(text);
    if (character.length == 0) {
      if (style == EscapeStyle::kJson) {
        out += "\xEF\xBF\xBD";  // U+FFFD
      } else {
        append_hex(out, "\\x", static_cast<unsigned char>(text.front()), 2);
      }
      text.remove_prefix(1);
      continue;
    }
    append_character(out, text.substr(0, character.length), character.code_point);
    text.remove_prefix(character.length);
  }
}

std::string_view cut_text(std::string_view text, std::size_t max_bytes) noexcept {
  if (text.size() <= max_bytes) return text;
  std::size_t end = max_bytes;
  // A character has at most three continuation bytes; more are not UTF-8.
  for (int i = 0; i < 3 && end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U;
       ++i) {
    --end;
  }
  return text.substr(0, end);
}

std::string show_name(std::string_view name) {
  std::string quoted = quote_text(name, kMaxShownPath);
  const bool is_plain =
      !name.empty() && quoted.size() == name.size() + 2 && name.find(' ') == std::string_view::npos;
  return is_plain ? std::string(name) : quoted;
}

std::string quote_text(std::string_view text, std::size_t max_bytes) {
  const std::string_view shown = cut_text(text, max_bytes);
  std::string out = "\"";
  append_escaped(out, shown, EscapeStyle::kHuman);
  out += shown.size() < text.size() ? "...\"" : "\"";
  return out;
}

std::string shell_word(std::string_view text) {
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("._/:@%+=,-").find(c) != std::string_view::npos;
  };
  if (!text.empty() && std::ranges::all_of(text, is_plain)) return std::string(text);
  std::string word = "'";
  for (const char each : text) {
    if (each == '\'') {
      word += R"('\'')";
    } else {
      word += each;
    }
  }
  return word + "'";
}

}  // namespace hearth
