#include "protocol/class_segment.hpp"

#include <algorithm>

namespace hearth::protocol {
namespace {

bool is_upper(char c) {
  return c >= 'A' && c <= 'Z';
}

bool is_lower(char c) {
  return c >= 'a' && c <= 'z';
}

char lower(char c) {
  return is_upper(c) ? static_cast<char>(c - 'A' + 'a') : c;
}

}  // namespace

std::string kebab_case(std::string_view class_name) {
  const bool shouts =
      std::ranges::none_of(class_name, is_lower) && std::ranges::any_of(class_name, is_upper);
  std::string segment;
  segment.reserve(class_name.size() + 8);
  for (const char c : class_name) {
    if (is_upper(c) && !shouts) segment += '-';
    segment += lower(c);
  }
  // Before underscores become dashes, so that a leading underscore stays as a dash.
  if (!shouts && segment.starts_with('-')) segment.erase(0, 1);
  std::ranges::replace(segment, '_', '-');
  if (!shouts && segment.ends_with('-')) segment.pop_back();
  return segment;
}

}  // namespace hearth::protocol
