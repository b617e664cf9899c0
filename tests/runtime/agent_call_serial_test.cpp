// Agents that handle one call at a time, and calls that would deadlock.
#include "runtime/agent_call_fixture.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace hearth::runtime::testing {
namespace {

using std::chrono::milliseconds;

ClassSettings serial_class(bool is_serial = true) {
  return settings_with(&ClassSettings::serial_calls, is_serial);
}

class SerialCallTest : public AgentCallTest {
 protected:
  // The method `name` of an agent of `script` calls `to`, and answers with the result.
  void forward(CallingScript& script, const std::string& name, const storage::AgentKey& to,
               const std::string& method, bool on_behalf = true) {
    script.methods[name] = [this, to, method, on_behalf](HostCalls& host, const AgentEvent& event) {
      const std::uint64_t token = ++last_token_;
      waiting_[token] = event.call;
      EXPECT_TRUE(host.start_call({.agent_class = to.agent_class,
                                   .name = to.name,
                                   .method = method,
                                   .call = on_behalf ? event.call : 0},
                                  token));
    };
    script.on_result = [this](HostCalls& host, const OperationResult& result) {
      const CallId call = waiting_.at(result.token);
      if (result.outcome) {
        EXPECT_TRUE(host.complete(call, *result.outcome));
      } else {
        EXPECT_TRUE(host.complete(call, result.outcome.error()));
      }
    };
  }
  ConnectionId connect(const storage::AgentKey& agent) {
    ConnectRequest request;
    request.id = "me";
    const std::string segment = agent.agent_class == "Asking" ? "asking" : "told-room";
    const ConnectionId id = shard_of(agent).connect(
        agent, segment, std::move(request), std::make_unique<FakePort>(std::make_shared<Sight>()));
    settle();
    return id;
  }
  // By a client of its own.
  std::shared_ptr<Answer> call_as_client(const storage::AgentKey& agent,
                                         const std::string& method) {
    auto answer = std::make_shared<Answer>();
    const ConnectionId client = connect(agent);
    shard_of(agent).call(client, method, "[]", std::make_unique<FakeSink>(answer));
    settle();
    return answer;
  }
  Shard& shard_of(const storage::AgentKey& agent) {
    return runtime_->shard(runtime_->shard_index(agent));
  }
  std::map<std::uint64_t, CallId> waiting_;
  std::uint64_t last_token_ = 0;
};

TEST_F(SerialCallTest, ItHandlesOneCallAtATimeAndTheOthersInOrder) {
  start({}, serial_class());
  const storage::AgentKey callee = room_agent();
  std::vector<CallId> open;
  room.methods["wait"] = [&](HostCalls&, const AgentEvent& event) { open.push_back(event.call); };
  const auto first_answer = call(callee, "wait");
  const auto second_answer = call(callee, "wait");
  const auto third_answer = call(callee, "wait");
  ASSERT_EQ(open.size(), 1U);
  for (std::size_t answered = 1; answered <= 3; ++answered) {
    HostCalls& host = *room.hosts.at(callee.name);
    EXPECT_TRUE(host.complete(open.back(), std::to_string(answered)));
    EXPECT_TRUE(runtime_->post(host.handle(), 0)) << "a turn, which ends";
    settle();
    EXPECT_EQ(open.size(), std::min<std::size_t>(answered + 1, 3));
  }
  EXPECT_EQ(first_answer->end, "ok 1");
  EXPECT_EQ(third_answer->end, "ok 3");
}

TEST_F(SerialCallTest, OthersWaitNoLongerThanTheirTime) {
  start({}, serial_class(), {.call_timeout = milliseconds(1000)});
  const storage::AgentKey callee = room_agent();
  room.methods["wait"] = keep_waiting;
  const auto running = call(callee, "wait");
  advance(milliseconds(500));
  const auto waiting = call(callee, "wait");
  advance(milliseconds(600));
  EXPECT_EQ(running->end, "error timeout: the agent did not answer in time");
  EXPECT_EQ(room.begun.size(), 2U);
  EXPECT_FALSE(waiting->end);
  advance(milliseconds(500));
  EXPECT_TRUE(waiting->end) << "the time in the queue counts";
}

TEST_F(SerialCallTest, OneThatWaitsInTheQueueIsGivenUpThere) {
  start({}, serial_class());
  room.methods["wait"] = keep_waiting;
  call({"ToldRoom", callee()}, "wait");
  asking.methods["go"] = [&](HostCalls& host, const AgentEvent& event) {
    EXPECT_TRUE(host.start_call(
        {.agent_class = "ToldRoom", .name = callee(), .method = "wait", .timeout_ms = 100}, 1));
    EXPECT_TRUE(host.complete(event.call, std::string_view()));
  };
  go();
  EXPECT_EQ(room.begun.size(), 1U);
  advance(milliseconds(200));
  EXPECT_EQ(told(), Told{"end timeout: the agent did not answer in time"})
      << "and it has not begun";
}

TEST_F(SerialCallTest, WhatAClientSendsBehindACallThatWaitsStaysBehindIt) {
  start({}, serial_class());
  const storage::AgentKey callee = room_agent();
  Shard& shard = runtime_->shard(1);
  std::vector<CallId> open;
  room.methods["wait"] = [&](HostCalls&, const AgentEvent& event) { open.push_back(event.call); };
  const ConnectionId one = connect(callee);
  const ConnectionId other = connect(callee);
  const auto ask = [&](ConnectionId id) {
    shard.call(id, "wait", "[]", std::make_unique<FakeSink>(std::make_shared<Answer>()));
    settle();
  };
  ask(one);
  ask(one);
  std::vector<ConnectionId> messages;
  room.on_message = [&](const AgentEvent& event) { messages.push_back(event.connection); };
  shard.message(one, "behind", FrameKind::kText);
  shard.message(other, "beside", FrameKind::kText);
  settle();
  EXPECT_EQ(messages, std::vector<ConnectionId>{other});
  EXPECT_TRUE(room.hosts.at(callee.name)->complete(open.at(0), std::string_view()));
  shard.message(other, "beside", FrameKind::kText);
  settle();
  EXPECT_EQ(messages, (std::vector<ConnectionId>{other, one, other}));
  EXPECT_EQ(open.size(), 2U);
}

TEST_F(SerialCallTest, ASerialAgentThatCallsItselfIsToldSo) {
  start(serial_class());
  const storage::AgentKey self = asking_agent();
  forward(asking, "go", self, "go");
  EXPECT_EQ(call(self, "go")->end,
            "error conflict: agent Asking \"" + self.name + "\" waits for this call");
  EXPECT_EQ(asking.begun.size(), 1U);
}

TEST_F(SerialCallTest, ACircleThroughOthersIsAnErrorAtOnce) {
  start(serial_class());
  const storage::AgentKey serial = asking_agent();
  const storage::AgentKey other = room_agent();
  forward(asking, "go", other, "back");
  forward(room, "back", serial, "go");
  EXPECT_EQ(call(serial, "go")->end,
            "error conflict: agent Asking \"" + serial.name + "\" waits for this call");
  EXPECT_EQ(call(serial, "go")->end->substr(0, 14), "error conflict") << "it is free again";
}

// ---- methods that run alone, in a class that is not serial ----

TEST_F(SerialCallTest, AnExclusiveCallWaitsForOthersAndClientsWaitBehindIt) {
  room.exclusive = {"alone"};
  start();
  const storage::AgentKey callee = room_agent();
  std::vector<std::pair<std::string, CallId>> open;
  for (const std::string method : {"plain", "alone"}) {
    room.methods[method] = [&open, method](HostCalls&, const AgentEvent& event) {
      open.emplace_back(method, event.call);
    };
  }
  forward(asking, "go", callee, "plain");
  const auto begun = [&] {
    std::vector<std::string> all;
    for (const auto& [method, id] : open) all.push_back(method);
    return all;
  };
  const auto end = [&](std::size_t index) {
    EXPECT_TRUE(room.hosts.at(callee.name)->complete(open.at(index).second, "1"));
    EXPECT_TRUE(runtime_->post(room.hosts.at(callee.name)->handle(), 0)) << "a turn, which ends";
    settle();
  };
  for (const char* const method : {"plain", "alone", "plain"}) call_as_client(callee, method);
  EXPECT_EQ(begun(), std::vector<std::string>{"plain"});
  const auto of_an_agent = go();
  EXPECT_EQ(open.size(), 2U) << "what is in progress may wait for the caller";
  end(0);
  EXPECT_EQ(open.size(), 2U);
  end(1);
  EXPECT_EQ(begun(), (std::vector<std::string>{"plain", "plain", "alone"}));
  EXPECT_EQ(of_an_agent->end, "ok 1");
  const auto late = go();
  EXPECT_EQ(open.size(), 3U) << "nothing runs beside it";
  end(2);
  EXPECT_EQ(open.size(), 5U) << "both plain ones";
}

TEST_F(SerialCallTest, AClientThatStillConnectsHoldsUpNoOther) {
  room.exclusive = {"alone"};
  for (const bool serial : {true, false}) {
    start({}, serial_class(serial));
    const storage::AgentKey callee = room_agent();
    room.methods["alone"] = answer_with("1");
    room.holds_connects = true;
    const auto connecting = call_as_client(callee, "alone");
    room.holds_connects = false;
    EXPECT_EQ(call_as_client(callee, "alone")->end, "ok 1");
    EXPECT_FALSE(connecting->end);
    stop();
  }
  start();
}

TEST_F(SerialCallTest, ACircleThroughACallThatRunsAloneIsAnErrorAtOnce) {
  struct Case {
    std::string method;
    bool conflict;
  };
  // Each calls the other agent, and that calls back.
  const std::vector<Case> cases{
      {"alone_then_plain", true}, {"plain_then_alone", true}, {"plain_then_plain", false}};
  asking.exclusive = {"alone", "alone_then_plain"};
  start();
  const storage::AgentKey one = asking_agent();
  const storage::AgentKey other = room_agent();
  for (const std::string method : {"plain", "alone"}) {
    asking.methods[method] = answer_with("1");
    forward(room, "back_to_" + method, one, method);
  }
  for (const Case& each : cases) {
    forward(asking, each.method, other, "back_to_" + each.method.substr(11));
    EXPECT_EQ(call_as_client(one, each.method)->end,
              each.conflict
                  ? "error conflict: agent Asking \"" + one.name + "\" waits for this call"
                  : "ok 1")
        << each.method;
  }
}

TEST_F(SerialCallTest, ACircleOfConcurrentAgentsIsNone) {
  start();
  const storage::AgentKey one = asking_agent();
  const storage::AgentKey other = room_agent();
  forward(asking, "go", other, "back");
  forward(room, "back", one, "end");
  asking.methods["end"] = answer_with("1");
  EXPECT_EQ(call(one, "go")->end, "ok 1");
}

TEST_F(SerialCallTest, TwoThatCallEachOtherForTwoClientsDoNotBothWait) {
  start(serial_class(), serial_class());
  const storage::AgentKey one = asking_agent();
  const storage::AgentKey other = room_agent();
  forward(asking, "go", other, "end");
  forward(room, "go", one, "end");
  for (CallingScript* const script : {&asking, &room}) script->methods["end"] = answer_with("1");
  // Both begin before either gets a result.
  const auto request = [&](const storage::AgentKey& key, const std::string& segment) {
    auto answer = std::make_shared<Answer>();
    const unsigned index = runtime_->shard_index(key);
    runtime_->shard(index).request(key, segment, "go", "[]", std::make_unique<RequestHead>(),
                                   std::make_unique<FakeSink>(answer));
    return answer;
  };
  const auto first_answer = request(one, "asking");
  const auto second_answer = request(other, "told-room");
  settle();
  ASSERT_TRUE(first_answer->end);
  ASSERT_TRUE(second_answer->end);
  const std::vector<std::string> ends{first_answer->end->substr(0, 5),
                                      second_answer->end->substr(0, 5)};
  EXPECT_EQ(std::ranges::count(ends, "error"), 1) << *first_answer->end << *second_answer->end;
}

TEST_F(SerialCallTest, ACallOfNoEventWaitsForItsTurn) {
  start(serial_class());
  const storage::AgentKey self = asking_agent();
  asking.methods["end"] = answer_with("");
  asking.methods["go"] = [&](HostCalls& host, const AgentEvent& event) {
    EXPECT_TRUE(
        host.start_call({.agent_class = self.agent_class, .name = self.name, .method = "end"}, 1));
    EXPECT_TRUE(host.complete(event.call, std::string_view()));
  };
  call(self, "go");
  EXPECT_EQ(asking.told[self.name], Told{"end ok "});
}

}  // namespace
}  // namespace hearth::runtime::testing
