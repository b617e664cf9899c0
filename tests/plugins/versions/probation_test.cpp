#include "plugins/versions/probation.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace hearth::plugins {
namespace {

using Verdict = Probation::Verdict;

const SteadyTime kBefore;
const SteadyTime kEnd = kBefore + std::chrono::minutes(1);

struct ProbationCase {
  std::string name;
  std::uint32_t started, failed;
  bool is_over, has_newer_schema;
  Verdict verdict;
  bool expects_wakes;  // afterwards
  std::string reason = {};
};

class ProbationTest : public ::testing::TestWithParam<ProbationCase> {};

// Five are asked, and one of them may fail.
TEST_P(ProbationTest, TheFirstThatWakeJudge) {
  const ProbationCase& param = GetParam();
  const auto starts = std::make_shared<runtime::StartCounts>();
  starts->started = param.started;
  starts->failed = param.failed;
  Probation probation;
  std::set<std::string> migrating;
  if (param.has_newer_schema) migrating.insert("counter");
  probation.begin(kEnd, {"counter"}, std::move(migrating));
  const auto judgement = probation.judge(
      [&](const std::string& segment) { return segment == "counter" ? starts : nullptr; },
      {.trial_agents = 5, .max_failed_percent = 20}, param.is_over ? kEnd : kBefore);
  EXPECT_EQ(judgement.verdict, param.verdict);
  EXPECT_EQ(judgement.reason, param.reason);
  EXPECT_EQ(probation.expects_wakes(), param.expects_wakes);
  EXPECT_EQ(probation.ends().has_value(), param.verdict == Verdict::kOpen);
}

INSTANTIATE_TEST_SUITE_P(Cases, ProbationTest,
                         ::testing::ValuesIn(std::vector<ProbationCase>{
                             {"TooFew", 3, 1, false, true, Verdict::kOpen, true},
                             {"Enough", 4, 1, false, false, Verdict::kOpen, false},
                             {"EnoughOfANewerSchema", 4, 1, false, true, Verdict::kProven, false},
                             {"TooManyFail", 3, 2, false, true, Verdict::kFailed, false,
                              "2 of the first 5 agents that woke could not start on it"},
                             {"TooFewAtTheEnd", 1, 3, true, false, Verdict::kProven, false},
                             {"NoneStartedAtTheEnd", 0, 1, true, false, Verdict::kFailed, false,
                              "1 of the first 1 agents that woke could not start on it"},
                             {"NobodyCame", 0, 0, true, true, Verdict::kProven, false},
                         }),
                         [](const auto& each) { return each.param.name; });

TEST(ProbationOfOneVersionTest, EachClassIsJudgedAndItIsProvenOnce) {
  std::map<std::string, std::shared_ptr<runtime::StartCounts>> starts;
  for (const char* segment : {"a", "b"}) starts[segment] = std::make_shared<runtime::StartCounts>();
  Probation probation;
  probation.begin(kEnd, {"a", "b"}, {"a", "b"});
  const auto judge = [&] {
    return probation.judge([&](const std::string& segment) { return starts.at(segment); },
                           {.trial_agents = 1}, kBefore);
  };
  starts["a"]->started = 1;
  EXPECT_EQ(judge().verdict, Verdict::kOpen);
  starts["b"]->started = 1;
  EXPECT_EQ(judge().verdict, Verdict::kProven);
  EXPECT_EQ(judge().verdict, Verdict::kOpen);
}

TEST(ProbationOfOneVersionTest, WhoFailsAfterAChangeOfSettingsIsNoJudge) {
  const auto starts = std::make_shared<runtime::StartCounts>();
  starts->failed = 9;
  Probation probation;
  probation.begin(kEnd, {"a"});
  probation.excuse("a");
  const auto starts_of = [&](const std::string&) { return std::shared_ptr(starts); };
  EXPECT_EQ(probation.judge(starts_of, {}, kBefore).verdict, Verdict::kOpen);
  EXPECT_EQ(probation.judge(starts_of, {}, kEnd).verdict, Verdict::kProven);
}

// Two classes, "a" with a newer schema. All of the first two agents start, or fail.
struct NewerSchemaCase {
  std::string name;
  std::map<std::string, bool> start;  // the classes whose agents have woken
  void (*meanwhile)(Probation&);
  bool is_over;
  Verdict verdict;
};

class NewerSchemaTest : public ::testing::TestWithParam<NewerSchemaCase> {};

TEST_P(NewerSchemaTest, IsProvenOnceAgentsOfItsClassHaveMigrated) {
  const NewerSchemaCase& param = GetParam();
  Probation probation;
  probation.begin(kEnd, {"a", "b"}, {"a"});
  param.meanwhile(probation);
  const auto starts_of = [&](const std::string& segment) {
    auto starts = std::make_shared<runtime::StartCounts>();
    if (const auto its = param.start.find(segment); its != param.start.end())
      (its->second ? starts->started : starts->failed) = 2;
    return starts;
  };
  const SteadyTime now = param.is_over ? kEnd + std::chrono::minutes(1) : kBefore;
  EXPECT_EQ(probation.judge(starts_of, {.trial_agents = 2}, now).verdict, param.verdict);
}

INSTANTIATE_TEST_SUITE_P(
    Cases, NewerSchemaTest,
    ::testing::ValuesIn(std::vector<NewerSchemaCase>{
        {"OnlyItsClassIsAsked", {{"a", true}}, [](Probation&) {}, false, Verdict::kProven},
        {"TheOtherIsNot", {{"b", true}}, [](Probation&) {}, false, Verdict::kOpen},
        {"OtherSettingsProveNothing",
         {},
         [](Probation& it) { it.excuse("a"); },
         false,
         Verdict::kOpen},
        {"ItsAgentsThatStartOnThemDo",
         {{"a", true}},
         [](Probation& it) { it.excuse("a"); },
         false,
         Verdict::kProven},
        {"ItsAgentsThatFailOnThemProveNothing",
         {{"a", false}},
         [](Probation& it) { it.excuse("a"); },
         false,
         Verdict::kOpen},
        {"TheOtherClassStillJudges",
         {{"b", false}},
         [](Probation& it) { it.excuse("a"); },
         false,
         Verdict::kFailed},
        {"AClassThatHasLeftIsNotAsked",
         {{"b", true}},
         [](Probation& it) { it.forget("a"); },
         false,
         Verdict::kOpen},
        {"AfterALaterVersionAgentsThatStartJudge",
         {{"a", true}},
         [](Probation& it) { it.begin_again(kEnd); },
         false,
         Verdict::kProven},
        {"AfterALaterVersionThoseThatFailDoNot",
         {{"a", false}, {"b", false}},
         [](Probation& it) { it.begin_again(kEnd); },
         false,
         Verdict::kOpen},
        {"AndItIsProvenAtTheEnd",
         {{"a", false}, {"b", false}},
         [](Probation& it) { it.begin_again(kEnd); },
         true,
         Verdict::kProven},
        {"WhatWasProvenIsSoAgain",
         {{"b", false}},
         [](Probation& it) {
           it.end();
           it.begin_again(kEnd);
         },
         false,
         Verdict::kOpen},
    }),
    [](const auto& each) { return each.param.name; });

}  // namespace
}  // namespace hearth::plugins
