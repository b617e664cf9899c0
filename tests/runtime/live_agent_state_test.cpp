// The trace of a state change in a live agent, from the client that writes the state to the clients
// that get it. Contents and permissions of a state: tests/extensions/state_test.cpp.
#include "fakes.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hearth::runtime {
namespace {

using testing::Answer;
using testing::FakePort;
using testing::FakeSink;
using testing::kUsualAgent;
using testing::ShardFixture;

constexpr std::string_view kTrace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

class StateTraceTest : public ::testing::Test {
 protected:
  // Each event is logged. A call sets the state.
  StateTraceTest() {
    shard_.script.checks_state = true;
    shard_.script.watches_state = true;
    shard_.script.on_event = [](HostCalls& host, const AgentEvent& event) -> Result<void> {
      host.log(to_string(event.kind));
      if (event.kind == EventKind::kCall) EXPECT_TRUE(host.set_state(0, "2"));
      return complete(host, event);
    };
  }

  ShardFixture::Client connect_under(std::string_view trace) {
    ShardFixture::Client client;
    ConnectRequest request;
    request.id = "me";
    request.target = "/agents/counter/a";
    request.headers = {{"traceparent", std::string(trace)}};
    client.id = shard_.shard().connect(kUsualAgent, "counter", std::move(request),
                                       std::make_unique<FakePort>(client.sight));
    shard_.settle();
    return client;
  }
  // Lines of events of this kind that are under the trace.
  std::size_t lines_of(EventKind kind, std::string_view trace = kTrace) const {
    const std::string text = "text=" + std::string(to_string(kind)) + " ";
    const std::string under = "trace=" + std::string(trace.substr(0, 36));
    std::size_t count = 0;
    for (const std::string& line : shard_.logger.events()) {
      if (line.find(text) != std::string::npos && line.find(under) != std::string::npos) ++count;
    }
    return count;
  }

  ShardFixture shard_;
};

TEST_F(StateTraceTest, WhatAClientDoesIsUnderItsTraceAndSoIsWhatFollows) {
  const auto client = connect_under(kTrace);
  shard_.store(client, "1");
  EXPECT_EQ(lines_of(EventKind::kStateCheck), 1U);
  EXPECT_EQ(lines_of(EventKind::kStateChanged), 1U);
  shard_.ask(client, "set");
  EXPECT_EQ(lines_of(EventKind::kStateChanged), 2U);
  shard_.leave(client, 1000, "bye", true);
  for (const EventKind kind : {EventKind::kConnecting, EventKind::kConnect, EventKind::kClose})
    EXPECT_EQ(lines_of(kind), 1U) << to_string(kind);
}

TEST_F(StateTraceTest, AWriteWithoutATraceAndWhatFollowsShareOne) {
  const auto client = shard_.join();
  shard_.logger.clear();
  shard_.store(client, "1");
  const auto lines = shard_.logger.events();
  const auto at = lines.empty() ? std::string::npos : lines[0].find("00-");
  ASSERT_NE(at, std::string::npos);
  const std::string trace = lines[0].substr(at, kTrace.size());
  EXPECT_EQ(lines_of(EventKind::kStateCheck, trace), 1U);
  EXPECT_EQ(lines_of(EventKind::kStateChanged, trace), 1U);
}

TEST_F(StateTraceTest, TheGateOfASubAgentIsUnderTheTraceOfWhoAsks) {
  auto head = std::make_unique<RequestHead>();
  head->target = "/agents/counter/a/sub/counter/b";
  head->headers = {{"traceparent", std::string(kTrace)}};
  shard_.shard().ask_for_sub_agent(kUsualAgent, "counter", kUsualAgent.child("Counter", "b"),
                                   std::move(head),
                                   std::make_unique<FakeSink>(std::make_shared<Answer>()));
  shard_.settle();
  EXPECT_EQ(lines_of(EventKind::kSubAgent), 1U);
}

// What clients show in the end: their own state at once, then each that is sent to them.
class StateOfClientsTest : public ::testing::Test {
 protected:
  StateOfClientsTest() {
    shard_.settle();
    for (const auto& client : {a_, b_}) client.sight->clear();
  }
  void set(const ShardFixture::Client& client, const std::string& state) {
    client.sight->push_back("text state " + state);
    shard_.write_state(client, state);
  }

  ShardFixture shard_;
  ShardFixture::Client a_ = shard_.connect("a", "one");
  ShardFixture::Client b_ = shard_.connect("a", "other");
};

TEST_F(StateOfClientsTest, TwoThatSetItAtOnceEndWithTheStateOfTheServer) {
  for (const std::string round : {"1", "2", "3"}) {
    set(a_, round);
    set(b_, round + "0");
    shard_.settle();
    EXPECT_EQ(a_.sight->back(), "text state " + round + "0");
    EXPECT_EQ(b_.sight->back(), "text state " + round + "0");
  }
}

TEST_F(StateOfClientsTest, OneThatSetsItAloneGetsNoneBack) {
  for (const std::string state : {"1", "2", "3"}) {
    set(a_, state);
    shard_.settle();
  }
  EXPECT_EQ(*a_.sight, (std::vector<std::string>{"text state 1", "text state 2", "text state 3"}));
  EXPECT_EQ(b_.sight->back(), "text state 3");
}

TEST_F(StateOfClientsTest, OneThatMeetsAStateOfTheAgentEndsWithItsOwn) {
  shard_.script.on_event = [](HostCalls& host, const AgentEvent& event) -> Result<void> {
    if (event.kind != EventKind::kCall) return {};
    EXPECT_TRUE(host.set_state(0, "7"));
    return complete(host, event);
  };
  shard_.call(b_, "seven");
  set(a_, "8");
  shard_.settle();
  EXPECT_EQ(a_.sight->back(), "text state 8");
  EXPECT_EQ(b_.sight->back(), "text state 8");
}

}  // namespace
}  // namespace hearth::runtime
