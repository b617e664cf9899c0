// An agent's slot while its class is not loaded. The change to another version:
// class_rollout_test.cpp.
#include "runtime/absent_class_fixture.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace hearth::runtime {
namespace {

using namespace testing;
using std::chrono::seconds;

class AgentSlotVersionsTest : public AbsentClassTest {};

TEST_F(AgentSlotVersionsTest, WhatAClientSentBeforeItLeftIsDeliveredWhenTheClassIsBack) {
  const auto client = shard_.join();
  take_away();
  shard_.shard().message(client.id, "last words", FrameKind::kText);
  shard_.leave(client, 1000, "bye", true);
  EXPECT_EQ(seen("message |last words"), 0);
  put_back();
  EXPECT_EQ(seen("message |last words"), 1);
  EXPECT_EQ(seen("close bye|"), 1);
  EXPECT_EQ(shard_.shard().counts().connections, 0U);
}

TEST_F(AgentSlotVersionsTest, WhoLeftWhileTheClassWasAwaitedIsForgottenWhenItIsGivenUp) {
  const auto client = shard_.join();
  take_away();
  shard_.leave(client, 1000, "bye", true);
  shard_.runtime().classes().give_up("counter");
  shard_.versions().class_is_gone("counter");
  shard_.settle();
  EXPECT_EQ(shard_.shard().counts().connections, 0U);
  EXPECT_EQ(shard_.shard().counts().slots, 0U);
}

TEST_F(AgentSlotVersionsTest, ClientsOfAClassAndOfAllBelowItCanBeSentAway) {
  const auto client = shard_.connect();
  ShardFixture::Client below;
  ConnectRequest request;
  request.target = "/agents/counter/a/sub/counter/b";
  below.id = shard_.shard().connect(kUsualAgent.child("Counter", "b"), "counter",
                                    std::move(request), std::make_unique<FakePort>(below.sight));
  shard_.settle();
  const auto told = std::pair(client.sight->size(), below.sight->size());
  shard_.versions().end_clients("Other", 1012, "not these");
  shard_.settle();
  EXPECT_EQ(std::pair(client.sight->size(), below.sight->size()), told) << "another class";
  shard_.versions().end_clients("Counter", 1012, "come again");
  shard_.settle();
  EXPECT_EQ(client.sight->back(), "close 1012 come again");
  EXPECT_EQ(below.sight->back(), "close 1012 come again");
}

TEST_F(AgentSlotVersionsTest, WhoWaitsForAClassIsToldWhenTheServerStops) {
  const auto client = shard_.join();
  take_away();
  const auto answer = shard_.ask(client, "who");
  ASSERT_EQ(answer->end, std::nullopt);
  shard_.restart();
  EXPECT_EQ(answer->end, "error closing: the server is shutting down");
}

TEST_F(AgentSlotVersionsTest, AnAgentThatFindsNoRoomKeepsNoCode) {
  shard_.restart({.max_live_agents = 1});
  shard_.script.on_event = [](HostCalls& host, const AgentEvent& event) -> Result<void> {
    if (event.kind == EventKind::kRequest) return {};  // hangs
    return complete(host, event);
  };
  const auto patient = shard_.connect("patient");  // whose slot stays
  shard_.loop.advance(seconds(1'000));
  ASSERT_EQ(shard_.script.alive, 0);
  const auto busy = shard_.ask("GET", "", "busy");
  const std::weak_ptr<const ServedClass> served = shard_.runtime().classes().find("counter");
  const auto before = served.use_count();
  shard_.say(patient, "hi");
  EXPECT_EQ(patient.sight->back(), "close 1013 too many agents are busy; try again later");
  EXPECT_EQ(served.use_count(), before);
}

}  // namespace
}  // namespace hearth::runtime
