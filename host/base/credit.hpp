#pragma once
// How many bytes a reader takes before it gives more credit.

#include <algorithm>
#include <cstdint>
#include <limits>

namespace hearth {

// Raises a credit, which may be negative. It stays at the largest one instead of overflowing:
// authors give the largest number for "all of it".
template <class Credit>
constexpr void raise_credit(Credit& credit, std::uint64_t bytes) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max();
  const auto has = static_cast<std::uint64_t>(std::max(credit, Credit{0}));
  if (has < kMost) credit += static_cast<Credit>(std::min(bytes, kMost - has));
}

}  // namespace hearth
