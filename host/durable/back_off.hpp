#pragma once
// How long to wait before a retry.

#include "base/random.hpp"

#include <chrono>

namespace hearth::durable {

// The waits of most kinds of work.
inline constexpr std::chrono::milliseconds kFirstWait{1'000};
inline constexpr std::chrono::milliseconds kLongestWait{300'000};

// `base` after the first failure, doubled with each further one, at most `cap`. To this a random
// part of up to a quarter is added, so that thousands of agents that failed together do not retry
// together.
std::chrono::milliseconds back_off(int failures, std::chrono::milliseconds base,
                                   std::chrono::milliseconds cap, Random& random);

}  // namespace hearth::durable
