#pragma once
// Records, by some of their members.

#include "json/json.hpp"

#include <gtest/gtest.h>

namespace hearth::durable {

// Whether a record has these members with these values, and maybe others.
inline ::testing::AssertionResult has(const Json& record, const Json& members) {
  for (const auto& [name, value] : members.items()) {
    if (!record.contains(name) || record.at(name) != value)
      return ::testing::AssertionFailure()
             << name << " is not " << dump_json(value) << " in " << dump_json(record);
  }
  return ::testing::AssertionSuccess();
}
inline ::testing::AssertionResult has(const Json& record, const char* members) {
  return has(record, *parse_json(members));
}

}  // namespace hearth::durable
