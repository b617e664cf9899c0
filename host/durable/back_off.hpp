#pragma once
// How long to wait before trying again.

#include "base/random.hpp"

#include <chrono>

namespace hearth::durable {

// `base` after the first failure, twice as long after each further one, at most `cap`; then up to a
// quarter is added at random, so that thousands of agents that failed together do not come back
// together.
std::chrono::milliseconds back_off(int failures, std::chrono::milliseconds base,
                                   std::chrono::milliseconds cap, Random& random);

}  // namespace hearth::durable
