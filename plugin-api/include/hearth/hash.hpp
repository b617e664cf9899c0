#pragma once

#include <cstdint>
#include <string_view>

namespace hearth {

// The same in each build and on each machine, so that it may be stored (FNV-1a). Not for text that
// an attacker chooses to collide.
[[nodiscard]] constexpr std::uint64_t stable_hash(std::string_view text) noexcept {
  std::uint64_t hash = 14695981039346656037U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211U;
  return hash;
}

}  // namespace hearth
