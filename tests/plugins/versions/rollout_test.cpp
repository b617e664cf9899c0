#include "plugins/versions/rollout.hpp"

#include "runtime/fakes.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace hearth::plugins {
namespace {

using State = Rollout::State;
using runtime::testing::Script;
using runtime::testing::ScriptedClass;
using runtime::testing::ShardFixture;

// Two classes of one library. No shard is waited for: it takes its turn when a test says so.
class RolloutTest : public ::testing::Test {
 protected:
  RolloutTest() {
    for (const char* segment : {"counter", "other"}) {
      before_[segment] = version(segment, shard_.script);
      shard_.runtime().classes().put(before_[segment].served);
    }
  }
  static ClassVersion version(const std::string& segment, Script& script) {
    return {.served = std::make_shared<const runtime::ServedClass>(
                runtime::ServedClass{segment, std::make_shared<ScriptedClass>(script), {}}),
            .settings = nullptr};
  }
  void begin(Rollout& rollout, const std::string& segment) {
    next_[segment] = version(segment, next_script_);
    (void)rollout.begin(next_[segment], settings_);
  }
  Served served(const std::string& segment) { return shard_.runtime().classes().find(segment); }

  Script next_script_;
  ShardFixture shard_;
  ClassVersions before_;
  ClassVersions next_;
  runtime::RolloutSettings settings_{.trial_agents = 0, .patience = {}};
};

TEST_F(RolloutTest, ItIsDoneWhenEachClassIs) {
  Rollout rollout(shard_.runtime(), shard_.loop.clock(), before_);
  begin(rollout, "counter");
  shard_.settle();
  EXPECT_EQ(rollout.look(), State::kDone);
  begin(rollout, "other");
  EXPECT_EQ(rollout.look(), State::kMoving) << "the shard has not answered for it";
  shard_.settle();
  EXPECT_EQ(rollout.look(), State::kDone);
  EXPECT_EQ(served("counter"), next_["counter"].served);
  EXPECT_EQ(served("other"), next_["other"].served);
  EXPECT_EQ(rollout.overtaken().size(), 2U);
  EXPECT_EQ(rollout.reason(), "");
}

TEST_F(RolloutTest, OneClassThatFailsTakesTheOthersBack) {
  Rollout rollout(shard_.runtime(), shard_.loop.clock(), before_);
  begin(rollout, "counter");
  settings_.trial_agents = 1;
  settings_.awaited = 2;
  begin(rollout, "other");
  shard_.settle();
  EXPECT_EQ(rollout.look(), State::kTrying);
  next_["other"].served->starts->failed = 2;
  EXPECT_EQ(rollout.look(), State::kRolledBack);
  EXPECT_EQ(rollout.reason(), "2 of the first 2 agents could not start on it");
  EXPECT_EQ(served("other"), before_["other"].served);
  EXPECT_EQ(served("counter"), next_["counter"].served) << "until it is told";
  rollout.roll_back(rollout.reason());
  EXPECT_EQ(served("counter"), before_["counter"].served);
  EXPECT_EQ(rollout.tried(), (std::map<std::string, std::size_t>{{"counter", 0}, {"other", 2}}));
}

TEST_F(RolloutTest, AClassThatNothingServedIsThereAtOnce) {
  before_.erase("other");
  shard_.runtime().classes().remove("other");
  Rollout rollout(shard_.runtime(), shard_.loop.clock(), before_);
  begin(rollout, "other");
  EXPECT_EQ(rollout.look(), State::kDone);
  EXPECT_TRUE(rollout.overtaken().empty());
  rollout.roll_back("another class has failed");
  EXPECT_EQ(served("other"), next_["other"].served) << "there is nothing to go back to";
}

TEST_F(RolloutTest, WhatIsServedOfTheSameCodeByNowIsGoneBackTo) {
  const auto other_settings = std::make_shared<const runtime::ServedClass>(
      runtime::ServedClass{"counter", before_["counter"].served->agent_class, {}});
  shard_.runtime().classes().put(other_settings);
  Rollout rollout(shard_.runtime(), shard_.loop.clock(), before_);
  begin(rollout, "counter");
  rollout.roll_back("a test says so");
  EXPECT_EQ(served("counter"), other_settings);
}

TEST_F(RolloutTest, AClassHasANewerSchemaThanBeforeOrPerhapsIfThatIsUnknown) {
  struct Case {
    std::uint32_t before, next;
    bool is_newer, may_be;
  };
  for (const auto& [before, next, is_newer, may_be] : std::vector<Case>{
           {0, 0, false, false}, {0, 1, true, true}, {1, 1, false, true}, {2, 1, false, true}}) {
    Script of_next;
    shard_.script.schema_version = before;
    of_next.schema_version = next;
    const ClassVersions now{{"counter", version("counter", of_next)},
                            {"added", version("added", of_next)}};
    EXPECT_EQ(with_newer_schema(now, before_).contains("counter"), is_newer) << next;
    EXPECT_FALSE(with_newer_schema(now, before_).contains("added")) << next;
    EXPECT_EQ(with_newer_schema(now, {}).size(), may_be ? 2U : 0U) << next;
  }
}

}  // namespace
}  // namespace hearth::plugins
