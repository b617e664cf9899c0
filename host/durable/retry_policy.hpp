#pragma once
// How often work is retried, and how long it waits in between.

#include "base/error.hpp"
#include "base/random.hpp"

#include <chrono>
#include <cstdint>

namespace hearth::durable {

// Of a schedule's run or a queue item.
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

// ---- other work ----

// The waits of most kinds of work.
inline constexpr std::chrono::milliseconds kFirstWait{1'000};
inline constexpr std::chrono::milliseconds kLongestWait{300'000};

// `base` after the first failure, doubled with each further one, at most `cap`. To this a random
// part of up to a quarter is added, so that thousands of agents that failed together do not retry
// together.
std::chrono::milliseconds back_off(int failures, std::chrono::milliseconds base,
                                   std::chrono::milliseconds cap, Random& random);

}  // namespace hearth::durable
