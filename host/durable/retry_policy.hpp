#pragma once
// How often a schedule's run or a queue item is retried, and how long it waits in between.

#include "base/error.hpp"
#include "base/random.hpp"

#include <chrono>
#include <cstdint>

namespace hearth::durable {

struct RetryPolicy {
  int max_attempts = 3;  // the first one included
  std::chrono::milliseconds base{100};
  std::chrono::milliseconds cap{3'000};

  friend bool operator==(const RetryPolicy&, const RetryPolicy&) = default;
};

// The policy of a request; 0 takes that field of `defaults`. Failure: kInvalidArgument, and the
// message says why: more than 1,000 attempts, a base above the cap, a cap above one day.
Result<RetryPolicy> checked_retry(std::uint32_t max_attempts, std::uint64_t base_ms,
                                  std::uint64_t cap_ms, const RetryPolicy& defaults = {});

// The wait after failure number `attempt` (from 1): random, from 0 to below
// min(2^attempt * base, cap).
std::chrono::milliseconds retry_wait(const RetryPolicy& policy, int attempt, Random& random);

}  // namespace hearth::durable
