#include "durable/back_off.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>

namespace hearth::durable {

std::chrono::milliseconds back_off(int failures, std::chrono::milliseconds base,
                                   std::chrono::milliseconds cap, Random& random) {
  constexpr int kMaxDoublings = 30;  // far past any cap, far from overflow
  const int doublings = std::clamp(failures - 1, 0, kMaxDoublings);
  const auto wait =
      std::min<std::int64_t>(cap.count(), std::max<std::int64_t>(base.count(), 1) << doublings);
  constexpr std::int64_t kMost = std::numeric_limits<std::uint32_t>::max();
  const auto quarter = static_cast<std::uint32_t>(std::min(wait / 4, kMost));
  return std::chrono::milliseconds(wait + random_up_to(quarter, random));
}

}  // namespace hearth::durable
