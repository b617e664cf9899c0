#pragma once
// A table of a file's keys: what a file says of each, and its field with that and without.

#include "config/setting.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace hearth::config {

template <class Owner>
struct KeyRow {
  std::string key;   // "limits.max_value"
  std::string text;  // of the value, as a file has it
  std::function<void(const Owner&, bool is_set)> expect_field{};

  // A file that has this key alone.
  [[nodiscard]] std::string file() const {
    std::string value = text;
    std::string rest = key;
    for (auto dot = rest.rfind('.'); dot != std::string::npos; dot = rest.rfind('.')) {
      value = "{" + rest.substr(dot + 1) + ": " + value + "}";
      rest.erase(dot);
    }
    return rest + ": " + value + "\n";
  }
};

template <class Owner, class T>
KeyRow<Owner> key(std::string name, std::string text, Fields<Owner, T> fields,
                  std::type_identity_t<T> set, std::type_identity_t<T> by_default) {
  auto expect = [=](const Owner& owner, bool is_set) {
    for (const Field<Owner, T>& field : fields)
      EXPECT_EQ(field.get(owner), is_set ? set : by_default) << name;
  };
  return {name, std::move(text), std::move(expect)};
}

// What was read from the file of `row` has its value, and of all other rows the defaults.
template <class Owner>
void expect_only(const KeyRow<Owner>& row, const Owner& read,
                 const std::vector<KeyRow<Owner>>& rows) {
  SCOPED_TRACE(row.file());
  for (const KeyRow<Owner>& each : rows)
    if (each.expect_field) each.expect_field(read, each.key == row.key);
}

}  // namespace hearth::config
