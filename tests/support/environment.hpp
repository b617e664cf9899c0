#pragma once
// Numbers of a test that the environment sets, instead of the usual ones.

#include <cstdint>
#include <cstdlib>
#include <string>

namespace hearth::testing {

// Built with a sanitizer, which changes time and memory.
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

inline std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::stoull(text);
}

}  // namespace hearth::testing
