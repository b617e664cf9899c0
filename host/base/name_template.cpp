#include "base/name_template.hpp"

#include <algorithm>

namespace hearth {
namespace {

// Whether a reader of the value and then `separator` can tell where the value ends.
bool ends_before(std::string_view separator, std::string_view value) {
  std::string joined(value);
  joined += separator;
  return joined.find(separator) == value.size();
}

}  // namespace

bool is_name_template(std::string_view text) {
  if (text.empty() || text.size() > kMaxTemplateBytes) return false;
  while (true) {
    const std::size_t open = text.find_first_of("{}");
    if (open == std::string_view::npos) return true;
    if (text[open] == '}') return false;
    const std::size_t close = text.find_first_of("{}", open + 1);
    if (close == std::string_view::npos || text[close] == '{' || close == open + 1) return false;
    const std::string_view name = text.substr(open + 1, close - open - 1);
    if (!std::ranges::all_of(name, [](char c) { return c > ' ' && c < '\x7f'; })) return false;
    text.remove_prefix(close + 1);
    if (text.starts_with('{')) return false;
  }
}

std::optional<std::string> expand_template(
    std::string_view text,
    const std::function<std::optional<std::string>(std::string_view)>& value) {
  std::string expanded;
  while (true) {
    const std::size_t open = std::min(text.find('{'), text.size());
    expanded += text.substr(0, open);
    if (open == text.size()) return expanded;
    const std::size_t close = text.find('}', open);
    if (close == std::string_view::npos) return std::nullopt;
    const auto found = value(text.substr(open + 1, close - open - 1));
    if (!found || found->empty()) return std::nullopt;
    expanded += *found;
    text.remove_prefix(close + 1);
    const std::size_t next = text.find('{');
    if (next != std::string_view::npos && !ends_before(text.substr(0, next), *found))
      return std::nullopt;
  }
}

}  // namespace hearth
