#include "durable/retry_policy.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>

namespace hearth::durable {
namespace {

constexpr std::uint32_t kMostAttempts = 1'000;
constexpr std::chrono::milliseconds kLongestCap = std::chrono::hours(24);

Error bad_retry(const char* why) {
  return Error{Errc::kInvalidArgument, std::string("the retry options cannot be kept: ") + why};
}

}  // namespace

Result<RetryPolicy> checked_retry(std::uint32_t max_attempts, std::uint64_t base_ms,
                                  std::uint64_t cap_ms, const RetryPolicy& defaults) {
  const auto longest = static_cast<std::uint64_t>(kLongestCap.count());
  if (max_attempts > kMostAttempts) return bad_retry("there are at most 1,000 attempts");
  if (cap_ms > longest) return bad_retry("the longest wait is above one day");
  // Before the comparison with the cap, so that the conversion below cannot overflow.
  if (base_ms > longest) return bad_retry("the first wait is above the longest one");
  RetryPolicy policy = defaults;
  if (max_attempts != 0) policy.max_attempts = static_cast<int>(max_attempts);
  if (base_ms != 0) policy.base = std::chrono::milliseconds(base_ms);
  if (cap_ms != 0) policy.cap = std::chrono::milliseconds(cap_ms);
  if (policy.base > policy.cap)
    return bad_retry("the first wait is above the longest one, or above the longest by default");
  return policy;
}

std::chrono::milliseconds retry_wait(const RetryPolicy& policy, int attempt, Random& random) {
  constexpr int kMaxDoublings = 30;  // a millisecond doubled so often is far past any cap
  const int doublings = std::clamp(attempt, 0, kMaxDoublings);
  const std::int64_t bound =
      std::min<std::int64_t>(policy.cap.count(), policy.base.count() << doublings);
  if (bound <= 0) return std::chrono::milliseconds(0);
  std::array<std::byte, sizeof(std::uint64_t)> bytes{};
  random.fill(bytes);
  std::uint64_t number = 0;
  std::memcpy(&number, bytes.data(), sizeof(number));
  return std::chrono::milliseconds(
      static_cast<std::int64_t>(number % static_cast<std::uint64_t>(bound)));
}

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
