#pragma once
// The parts of a request target: "/agents/counter/a/notes?x=1&y=a%20b".

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace hearth {

// Text with %XX and + decoded. A % without two hexadecimal digits stays as it is.
[[nodiscard]] inline std::string url_decoded(std::string_view text) {
  const auto digit = [](char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
  };
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+') {
      out.push_back(' ');
    } else if (text[i] == '%' && i + 2 < text.size() && digit(text[i + 1]) >= 0 &&
               digit(text[i + 2]) >= 0) {
      out.push_back(static_cast<char>(digit(text[i + 1]) * 16 + digit(text[i + 2])));
      i += 2;
    } else {
      out.push_back(text[i]);
    }
  }
  return out;
}

// The target without its query, not decoded.
[[nodiscard]] inline std::string_view url_path(std::string_view target) {
  return target.substr(0, target.find('?'));
}

// The first value of `name` in the query, decoded. "?x" gives x an empty value.
[[nodiscard]] inline std::optional<std::string> url_query(std::string_view target,
                                                          std::string_view name) {
  const std::size_t mark = target.find('?');
  if (mark == std::string_view::npos) return std::nullopt;
  std::string_view rest = target.substr(mark + 1);
  while (!rest.empty()) {
    const std::string_view pair = rest.substr(0, rest.find('&'));
    rest.remove_prefix(pair.size() < rest.size() ? pair.size() + 1 : pair.size());
    const std::size_t equals = pair.find('=');
    if (url_decoded(pair.substr(0, equals)) != name) continue;
    return equals == std::string_view::npos ? std::string() : url_decoded(pair.substr(equals + 1));
  }
  return std::nullopt;
}

}  // namespace hearth
