// Promise P2 of AgentCalls: a call with a key runs once.
#include "runtime/fakes.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>

namespace hearth::runtime {
namespace {

using namespace testing;

// "add" counts in the state, "hang" and "look" (which is idempotent) stay open, "fail" fails.
class LiveAgentAnswersTest : public ::testing::Test {
 protected:
  LiveAgentAnswersTest() {
    shard_.script.idempotent_methods = {"look"};
    shard_.script.on_event = [this](HostCalls& host, const AgentEvent& event) -> Result<void> {
      if (event.call == 0) return {};
      if (event.kind != EventKind::kCall) return complete(host, event);
      ++runs_;
      if (event.name == "hang" || event.name == "look") {
        shard_.script.open_calls.push_back(event.call);
        return {};
      }
      if (event.name == "fail") return Error{Errc::kPlugin, "no"};
      if (event.name == "add") (void)host.set_state(0, std::to_string(runs_));
      return host.complete(event.call, std::string_view(std::to_string(runs_)));
    };
  }
  ~LiveAgentAnswersTest() override { shard_.script.on_event = nullptr; }

  std::shared_ptr<Answer> call(const std::string& method, const std::string& key = "k",
                               const std::string& fingerprint = "f") {
    return shard_.call_agent(method, key, fingerprint);
  }
  void evict() {
    shard_.act([](HostCalls& host) { ASSERT_TRUE(host.evict()); });
  }

  int runs_ = 0;
  ShardFixture shard_;
};

TEST_F(LiveAgentAnswersTest, P7_TheSameCallGetsTheStoredAnswer) {
  for (const char* method : {"add", "get", "fail"}) {
    const auto first = call(method, method);
    const auto second = call(method, method);
    EXPECT_EQ(second->end, first->end) << method;
    EXPECT_EQ(second->status, 200U);
  }
  EXPECT_EQ(runs_, 3);
  EXPECT_EQ(call("add", "")->end, "ok 4") << "a call without a key runs each time";
  EXPECT_EQ(call("add", "")->end, "ok 5");
}

TEST_F(LiveAgentAnswersTest, P7_AnAnswerSurvivesEvictionAndRestart) {
  EXPECT_EQ(call("add")->end, "ok 1");
  evict();
  EXPECT_EQ(call("add")->end, "ok 1");
  shard_.restart();
  EXPECT_EQ(call("add")->end, "ok 1");
  EXPECT_EQ(runs_, 1);
}

TEST_F(LiveAgentAnswersTest, P7_AKeyOfAnotherCallIsRefused) {
  EXPECT_EQ(call("add")->end, "ok 1");
  const auto other = call("add", "k", "another");
  EXPECT_EQ(other->status, 422U);
  EXPECT_TRUE(other->end->starts_with("error invalid_argument"));
  EXPECT_EQ(runs_, 1);
}

TEST_F(LiveAgentAnswersTest, P7_WhileItRunsASecondOneIsRefused) {
  const auto first = call("hang");
  EXPECT_EQ(call("hang")->status, 423U);
  EXPECT_FALSE(first->end);
  shard_.act([this](HostCalls& host) {
    EXPECT_TRUE(host.complete(shard_.script.open_calls.at(0), std::string_view("7")));
  });
  EXPECT_EQ(first->end, "ok 7");
  EXPECT_EQ(call("hang")->end, "ok 7");
  EXPECT_EQ(runs_, 1);
}

TEST_F(LiveAgentAnswersTest, P7_WhatWasCutOffIsNotRunAgain) {
  const auto first = call("hang");
  evict();
  EXPECT_EQ(first->end, "error closing: the agent was evicted (admin); try again");
  const auto second = call("hang");
  EXPECT_EQ(second->status, 409U);
  EXPECT_EQ(second->end,
            "error conflict: a call with this key was cut off, and may have had effects");
  EXPECT_EQ(runs_, 1);
}

TEST_F(LiveAgentAnswersTest, P7_AnIdempotentMethodRunsAgainAfterARestart) {
  (void)call("look");
  shard_.restart();
  (void)call("look");
  EXPECT_EQ(runs_, 2);
  shard_.act([this](HostCalls& host) {
    EXPECT_TRUE(host.complete(shard_.script.open_calls.at(1), std::string_view("8")));
  });
  EXPECT_EQ(call("look")->end, "ok 8");
}

TEST_F(LiveAgentAnswersTest, P7_OfAReadOnlyMethodNothingIsKept) {
  shard_.script.read_only_methods = {"get", "hang"};
  EXPECT_EQ(call("get")->end, "ok 1");
  EXPECT_EQ(call("get")->end, "ok 2");
  EXPECT_EQ(call("get", "k", "another")->end, "ok 3");
  EXPECT_EQ(call("add")->end, "ok 4") << "the key is free";
  EXPECT_EQ(call("get", "k", "another")->status, 422U) << "and then it is not";
  (void)call("hang", "h");
  EXPECT_EQ(call("hang", "h")->status, 423U);
  evict();
  (void)call("hang", "h");
  EXPECT_EQ(runs_, 6) << "what was cut off runs again";
}

TEST_F(LiveAgentAnswersTest, P7_ALimitThatTheMethodMeetsIsToldAgainAndOneThatMayPassIsNot) {
  shard_.script.on_event = [this](HostCalls& host, const AgentEvent& event) -> Result<void> {
    if (event.kind == EventKind::kCall && ++runs_ == 1)
      return Error{Errc::kUnavailable, "not so fast"};
    if (event.kind == EventKind::kCall && event.name == "full")
      return Error{Errc::kLimitExceeded, "no room"};
    return event.call == 0 ? Result<void>() : host.complete(event.call, std::string_view("1"));
  };
  EXPECT_EQ(call("add")->end, "error unavailable: not so fast");
  EXPECT_EQ(call("add")->end, "ok 1");
  EXPECT_EQ(call("add")->end, "ok 1");
  EXPECT_EQ(runs_, 2);
  for (int tries = 0; tries < 2; ++tries)
    EXPECT_EQ(call("full", "f")->end, "error limit_exceeded: no room");
  EXPECT_EQ(runs_, 3) << "it ran, and what it wrote before stays";
}

TEST_F(LiveAgentAnswersTest, P7_ACallThatTimesOutIsToldSoAgain) {
  const auto first = call("hang");
  shard_.loop.advance(std::chrono::seconds(30));
  EXPECT_EQ(first->end, "error timeout: the agent did not answer in time");
  EXPECT_EQ(call("hang")->end, first->end);
  EXPECT_EQ(runs_, 1);
}

TEST_F(LiveAgentAnswersTest, PartsThatNobodyReadsGiveACallNoMoreTime) {
  const auto answer = call("hang");
  for (int second = 0; second < 29; ++second) {
    shard_.loop.advance(std::chrono::seconds(1));
    EXPECT_TRUE(shard_.script.host->emit(shard_.script.open_calls.at(0), "1"));
  }
  EXPECT_FALSE(answer->end);
  shard_.loop.advance(std::chrono::seconds(1));
  EXPECT_EQ(answer->end, "error timeout: the agent did not answer in time");
}

}  // namespace
}  // namespace hearth::runtime
