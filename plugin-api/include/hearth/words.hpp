#pragma once
// Words for the values of an enum, such as in a table of the database. The table is an array of
// pairs:
//
//     constexpr std::array<std::pair<Size, std::string_view>, 2> kSizes = {{
//         {Size::kSmall, "small"},
//         {Size::kLarge, "large"},
//     }};

#include <string_view>

namespace hearth {

// The first value of the table for a word that it does not have, such as one of a later version.
template <class Enum, class Table>
[[nodiscard]] Enum find_word(const Table& table, std::string_view word) {
  for (const auto& [value, name] : table) {
    if (name == word) return value;
  }
  return table[0].first;
}

// The first word for a value that the table does not have.
template <class Enum, class Table>
[[nodiscard]] std::string_view word_of(const Table& table, Enum value) {
  for (const auto& [each, name] : table) {
    if (each == value) return name;
  }
  return table[0].second;
}

}  // namespace hearth
