#pragma once
// What a test is asked for from outside: other numbers than its usual ones.

#include <cstdint>
#include <cstdlib>
#include <string>

namespace hearth::testing {

inline std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::stoull(text);
}

}  // namespace hearth::testing
