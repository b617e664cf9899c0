// What agents and their callers see of durable work: each scenario of the .json files, and walks of
// random steps, in a process that is really killed and in one whose kills are copies of its files.

#include "scenarios/killed_world.hpp"
#include "scenarios/random_steps.hpp"
#include "scenarios/runtime_world.hpp"
#include "scenarios/scenario.hpp"
#include "support/temp_directory.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

namespace hearth::scenarios {
namespace {

Value scenarios() {
  return Value::parse(std::ifstream(SCENARIOS "/jobs.json"));
}

std::vector<std::string> names() {
  std::vector<std::string> all;
  const Value list = scenarios();
  for (const auto& each : list.items()) all.push_back(each.key());
  return all;
}

Value seen_by_hand(const Value& steps) {
  const testing::TempDirectory directory;
  RuntimeWorld world({.directory = directory.path()});
  return Run(world).all(steps);
}

Value seen_with_kills(const Value& steps) {
  KilledWorld world;
  return Run(world).all(steps);
}

void expect_same(const Value& seen, const Value& expected) {
  for (std::size_t i = 0; i < std::min(seen.size(), expected.size()); ++i)
    EXPECT_EQ(seen[i], expected[i])
        << "seen: " << seen[i].dump() << "\nexpected: " << expected[i].dump();
  EXPECT_EQ(seen.size(), expected.size()) << "seen: " << seen.dump();
}

class ScenariosTest : public ::testing::TestWithParam<std::string> {};

TEST_P(ScenariosTest, ByHand) {
  const Value scenario = scenarios().at(GetParam());
  expect_same(seen_by_hand(scenario.at("steps")), scenario.at("seen"));
}

TEST_P(ScenariosTest, WithKilledProcesses) {
  const Value scenario = scenarios().at(GetParam());
  expect_same(seen_with_kills(scenario.at("steps")), scenario.at("seen"));
}

INSTANTIATE_TEST_SUITE_P(Jobs, ScenariosTest, ::testing::ValuesIn(names()),
                         [](const auto& each) { return each.param; });

// What holds at the end of any walk.
void expect_at_rest(const Value& seen, const Walk& walk) {
  const Value journal = seen.back().at("journal").at("ok");
  for (const std::string& note : walk.notes)
    EXPECT_EQ(std::ranges::count(journal, Value(note)), 1) << note;
  EXPECT_EQ(std::ranges::count(journal, Value("plain 3")), walk.plain_fibers);
  for (const Value& record : seen[seen.size() - 2].at("records").at("ok")) {
    const std::string status = record.at("status").get<std::string>();
    EXPECT_TRUE(status != "pending" && status != "running") << record.dump();
  }
  for (const Value& schedule : seen[seen.size() - 3].at("schedules").at("ok"))
    EXPECT_EQ(schedule.at("type"), "interval") << schedule.dump();
}

class WalksTest : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(WalksTest, NothingIsLostOrDoubledAndBothProcessesShowTheSame) {
  for (std::uint64_t each = 0; each < 10; ++each) {
    const std::uint64_t seed = GetParam() * 10 + each;
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Walk walk = random_walk(seed);
    const Value seen = seen_by_hand(walk.steps);
    expect_at_rest(seen, walk);
    expect_same(seen_with_kills(walk.steps), seen);
    if (::testing::Test::HasFailure()) FAIL() << walk.steps.dump();
  }
}
INSTANTIATE_TEST_SUITE_P(TenSeedsEach, WalksTest, ::testing::Range<std::uint64_t>(0, 3));

}  // namespace
}  // namespace hearth::scenarios
