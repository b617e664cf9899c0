#include "durable/back_off.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace hearth::durable {

std::chrono::milliseconds back_off(int failures, std::chrono::milliseconds base,
                                   std::chrono::milliseconds cap, Random& random) {
  constexpr int kMaxDoublings = 30;  // far past any cap, far from overflow
  const int doublings = std::clamp(failures - 1, 0, kMaxDoublings);
  const auto wait =
      std::min<std::int64_t>(cap.count(), std::max<std::int64_t>(base.count(), 1) << doublings);
  std::array<std::byte, sizeof(std::uint32_t)> bytes{};
  random.fill(bytes);
  std::uint32_t number = 0;
  std::memcpy(&number, bytes.data(), sizeof(number));
  const std::int64_t jitter = wait / 4 == 0 ? 0 : number % (wait / 4 + 1);
  return std::chrono::milliseconds(wait + jitter);
}

}  // namespace hearth::durable
