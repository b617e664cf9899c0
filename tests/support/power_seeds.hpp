#pragma once
// The seeds of a test of losses of power: its own, or the seeds in HEARTH_POWER_SEEDS.

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>

namespace hearth::testing {

// Both ends belong to them.
struct Seeds {
  std::uint64_t from = 1;
  std::uint64_t to = 1;

  [[nodiscard]] int count() const { return static_cast<int>(to - from + 1); }
};

// HEARTH_POWER_SEEDS=from:to, or one seed alone; nothing without it.
inline std::optional<Seeds> seeds_asked_for() {
  const char* const given = std::getenv("HEARTH_POWER_SEEDS");
  if (given == nullptr) return std::nullopt;
  const std::string text = given;
  const auto colon = text.find(':');
  const std::uint64_t from = std::stoull(text);
  return Seeds{.from = from,
               .to = colon == std::string::npos ? from : std::stoull(text.substr(colon + 1))};
}

// `run(seed)` returns what is wrong; empty: nothing. Each seed with a fault is a failure of the
// test, and the fifth one ends it.
template <class Run>
void run_seeds(const Seeds& seeds, Run run) {
  int failed = 0;
  for (std::uint64_t seed = seeds.from; seed <= seeds.to && failed < 5; ++seed) {
    const std::string problem = run(seed);
    if (problem.empty()) continue;
    ++failed;
    ADD_FAILURE() << "seed " << seed << ": " << problem;
  }
}

}  // namespace hearth::testing
