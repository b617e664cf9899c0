#include "storage/agent_key.hpp"

#include <algorithm>

namespace hearth::storage {
namespace {

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

}  // namespace

bool is_class_name(std::string_view text) noexcept {
  return !text.empty() && text.size() <= kMaxClassNameBytes && is_letter(text.front()) &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return is_letter(c) || is_digit(c) || c == '-'; });
}

}  // namespace hearth::storage
