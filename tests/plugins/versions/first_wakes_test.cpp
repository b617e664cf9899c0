#include "plugins/versions/first_wakes.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace hearth::plugins {
namespace {

using Verdict = FirstWakes::Verdict;

struct FirstWakesCase {
  std::string name;
  std::uint32_t started, failed;
  bool is_over, has_newer_schema;
  Verdict verdict;
  bool expects_any;  // afterwards
  std::string reason = {};
};

class FirstWakesTest : public ::testing::TestWithParam<FirstWakesCase> {};

// Five are asked, and one of them may fail.
TEST_P(FirstWakesTest, TheVersionIsJudgedByThem) {
  const FirstWakesCase& param = GetParam();
  const auto starts = std::make_shared<runtime::StartCounts>();
  starts->started = param.started;
  starts->failed = param.failed;
  FirstWakes wakes;
  wakes.watch({"counter"}, param.has_newer_schema);
  const auto judgement = wakes.judge(
      [&](const std::string& segment) { return segment == "counter" ? starts : nullptr; },
      {.trial_agents = 5, .max_failed_percent = 20}, param.is_over);
  EXPECT_EQ(judgement.verdict, param.verdict);
  EXPECT_EQ(judgement.reason, param.reason);
  EXPECT_EQ(wakes.expects_any(), param.expects_any);
}

INSTANTIATE_TEST_SUITE_P(Cases, FirstWakesTest,
                         ::testing::ValuesIn(std::vector<FirstWakesCase>{
                             {"TooFew", 3, 1, false, true, Verdict::kOpen, true},
                             {"Enough", 4, 1, false, false, Verdict::kOpen, false},
                             {"EnoughOfANewerSchema", 4, 1, false, true, Verdict::kProven, false},
                             {"TooManyFail", 3, 2, false, true, Verdict::kFailed, false,
                              "2 of the first 5 agents that woke could not start on it"},
                             {"TooFewAtTheEnd", 1, 3, true, false, Verdict::kOpen, false},
                             {"NoneStartedAtTheEnd", 0, 1, true, false, Verdict::kFailed, false,
                              "1 of the first 1 agents that woke could not start on it"},
                             {"NobodyCame", 0, 0, true, true, Verdict::kProven, false},
                         }),
                         [](const auto& each) { return each.param.name; });

TEST(FirstWakesOfOneVersionTest, EachClassIsJudgedAndItIsProvenOnce) {
  std::map<std::string, std::shared_ptr<runtime::StartCounts>> starts;
  for (const char* segment : {"a", "b"}) starts[segment] = std::make_shared<runtime::StartCounts>();
  FirstWakes wakes;
  wakes.watch({"a", "b"}, true);
  const auto judge = [&] {
    return wakes.judge([&](const std::string& segment) { return starts.at(segment); },
                       {.trial_agents = 1}, false);
  };
  starts["a"]->started = 1;
  EXPECT_EQ(judge().verdict, Verdict::kOpen);
  starts["b"]->started = 1;
  EXPECT_EQ(judge().verdict, Verdict::kProven);
  EXPECT_EQ(judge().verdict, Verdict::kOpen);
}

TEST(FirstWakesOfOneVersionTest, WhoFailsAfterAChangeOfSettingsIsNoJudge) {
  const auto starts = std::make_shared<runtime::StartCounts>();
  starts->failed = 9;
  FirstWakes wakes;
  wakes.watch({"a"}, false);
  wakes.excuse();
  EXPECT_EQ(
      wakes.judge([&](const std::string&) { return std::shared_ptr(starts); }, {}, true).verdict,
      Verdict::kOpen);
}

}  // namespace
}  // namespace hearth::plugins
