#pragma once
// Walks of random steps: the same seed gives the same steps on every machine.

#include "scenarios/scenario.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace hearth::scenarios {

struct Walk {
  Value steps = Value::array();
  // What its end must show: how many unrecorded fibers came to their last step, and the notes of
  // schedules and of the queue, each of which was delivered once.
  int plain_fibers = 0;
  std::vector<std::string> notes;
};

// Begins work of all kinds, cancels and settles some of it, and lets time pass, with up to four
// kills, evictions and one upgrade between. At the end everything has had the time to come to rest;
// the last two steps ask for the records and the journal.
[[nodiscard]] Walk random_walk(std::uint64_t seed);

}  // namespace hearth::scenarios
