#pragma once
// Walks of random steps: the same seed gives the same steps on every machine.

#include "scenarios/scenario.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace hearth::scenarios {

struct Walk {
  Value steps = Value::array();
  // Its journal must have the last step of so many fibers without a record, and each of these notes
  // once: a schedule or the queue delivers it.
  int plain_fibers = 0;
  std::vector<std::string> notes;
};

// Begins work of all kinds, cancels and settles some of it, and lets time pass, with up to four
// kills, evictions and one upgrade between. At the end everything has had the time to come to rest;
// the last two steps ask for the records and the journal.
[[nodiscard]] Walk random_walk(std::uint64_t seed);

}  // namespace hearth::scenarios
