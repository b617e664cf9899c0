// Which events an eviction interrupts, and which are delivered again: promise P6 of AgentSlot.
#include "runtime/absent_class_fixture.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace hearth::runtime {
namespace {

using namespace testing;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::string_view kTryAgain = "error closing: the agent was evicted (admin); try again";

// Calls of "get" are idempotent, calls of "put" are not. Events of the kinds in hanging_ are
// accepted and left open. All others are answered with the number of the agent's life.
class AgentSlotInterruptedTest : public AbsentClassTest {
 protected:
  AgentSlotInterruptedTest() { set_up(); }
  // The script speaks of members that go before the shard does.
  ~AgentSlotInterruptedTest() override { shard_.script.on_event = nullptr; }

  void set_up() {
    shard_.script.idempotent_methods = {"get", "more"};
    shard_.script.on_event = [this](HostCalls& host, const AgentEvent& event) -> Result<void> {
      if (event.kind == EventKind::kStart) ++life_;
      deadline_ms_ = event.deadline_ms;
      if (event.call == 0) return {};
      if (std::ranges::find(hanging_, event.kind) != hanging_.end() && event.name != "quick") {
        shard_.script.open_calls.push_back(event.call);
        return {};
      }
      return host.complete(event.call, std::string_view(std::to_string(life_)));
    };
  }
  // Does `what` as the agent, in a turn of its own.
  void as_agent(std::function<void(HostCalls&)> what) {
    shard_.script.on_result = [what = std::move(what)](HostCalls& host, const OperationResult&) {
      what(host);
    };
    ASSERT_TRUE(shard_.runtime().post(shard_.script.host->handle(), 1));
    shard_.settle();
  }
  void evict() {
    as_agent([](HostCalls& host) { ASSERT_TRUE(host.evict()); });
  }
  // The next life answers what this one left open.
  void evict_and_answer() {
    hanging_.clear();
    evict();
  }
  std::vector<std::string>& history() { return shard_.script.history; }

  int life_ = 0;
  std::uint64_t deadline_ms_ = 0;
  std::vector<EventKind> hanging_ = {EventKind::kCall};
};

// ---- calls --------------------------------------------------------------------------------------

TEST_F(AgentSlotInterruptedTest, P6_AnIdempotentCallIsAnsweredByTheNextInstance) {
  const auto client = shard_.connect();
  const auto answer = shard_.ask(client, "get", "[1]");
  evict_and_answer();
  EXPECT_EQ(answer->end, "ok 2");
  EXPECT_EQ(seen("call get|[1]"), 2);
  EXPECT_EQ(*client.sight, Sight{"handshake counter/a -"}) << "the client notices nothing";
}

TEST_F(AgentSlotInterruptedTest, P6_AllOtherCallsAreToldToTryAgain) {
  const auto client = shard_.connect();
  const auto get = shard_.call(client, "get");
  const auto put = shard_.call(client, "put");
  shard_.settle();
  evict_and_answer();
  EXPECT_EQ(put->end, kTryAgain);
  EXPECT_EQ(get->end, "ok 2");
  EXPECT_EQ(seen("call put|[]"), 1);
}

TEST_F(AgentSlotInterruptedTest, P6_RequestsAreNotRepeated) {
  hanging_ = {EventKind::kRequest};
  shard_.script.idempotent_methods = {"GET"};
  const auto answer = shard_.ask("GET");
  evict_and_answer();
  EXPECT_EQ(answer->end, kTryAgain);
}

TEST_F(AgentSlotInterruptedTest, P6_CallsComeAgainInTheirOrderAndBeforeWhatWaits) {
  const auto one = shard_.connect("a", "one");
  const auto two = shard_.connect("a", "two");
  const auto answers = {shard_.call(one, "get", "[1]"), shard_.call(two, "get", "[2]"),
                        shard_.call(one, "more", "[3]")};
  shard_.settle();
  hanging_.clear();
  shard_.script.on_result = [](HostCalls& host, const OperationResult&) { (void)host.evict(); };
  shard_.runtime().post(shard_.script.host->handle(), 1);
  shard_.loop.step();  // the eviction is under way, its end is posted
  shard_.shard().message(two.id, "later", FrameKind::kText);
  history().clear();
  shard_.settle();
  EXPECT_EQ(history(),
            (std::vector<std::string>{"destroyed", "start |", "call get|[1]", "call get|[2]",
                                      "call more|[3]", "message |later"}));
  for (const auto& answer : answers) EXPECT_EQ(answer->end, "ok 2");
}

TEST_F(AgentSlotInterruptedTest, P6_AnAnswerThatHasBegunIsNotBegunAgain) {
  const auto answer = shard_.ask(shard_.connect(), "get");
  as_agent([this](HostCalls& host) {
    EXPECT_TRUE(host.emit(shard_.script.open_calls.at(0), "\"part\""));
  });
  evict_and_answer();
  EXPECT_EQ(answer->parts, std::vector<std::string>{"\"part\""});
  EXPECT_EQ(answer->end, kTryAgain);
}

TEST_F(AgentSlotInterruptedTest, P6_ACallWhoseClientHasLeftIsNotRunAgain) {
  const auto client = shard_.connect();
  const auto answer = shard_.ask(client, "get");
  shard_.leave(client, 1006, "", false);
  evict_and_answer();
  EXPECT_EQ(seen("call get|[]"), 1);
  EXPECT_EQ(answer->end, std::nullopt);
  EXPECT_EQ(shard_.shard().counts().connections, 0U);
}

TEST_F(AgentSlotInterruptedTest, P6_NorOneWhoseClientTheAgentHasClosed) {
  const auto client = shard_.connect();
  shard_.ask(client, "get");
  as_agent([&](HostCalls& host) { EXPECT_TRUE(host.close(client.id, 4000, "enough")); });
  ASSERT_EQ(client.sight->back(), "close 4000 enough");
  evict_and_answer();
  EXPECT_EQ(seen("call get|[]"), 1);
}

TEST_F(AgentSlotInterruptedTest, P6_NorOneWhoseClientLeavesWhileItWaits) {
  const auto client = shard_.connect();
  const auto answer = shard_.ask(client, "get");
  take_away();
  shard_.shard().disconnected(client.id, 1000, "bye", true);
  put_back();
  EXPECT_EQ(seen("call get|[]"), 1);
  EXPECT_EQ(seen("close bye|"), 1);
  EXPECT_EQ(answer->end, std::nullopt);
  EXPECT_EQ(shard_.shard().counts().connections, 0U);
}

TEST_F(AgentSlotInterruptedTest, P6_ACallIsRepeatedAsOftenAsItIsCutOff) {
  const auto answer = shard_.ask(shard_.connect(), "get");
  for (int i = 0; i < 5; ++i) evict();
  EXPECT_EQ(answer->end, std::nullopt);
  evict_and_answer();
  EXPECT_EQ(answer->end, "ok 7");
}

TEST_F(AgentSlotInterruptedTest, P6_ACallThatEvictsItsAgentEachTimeComesToAnEnd) {
  const auto client = shard_.join();
  shard_.script.on_event = [](HostCalls& host, const AgentEvent& event) -> Result<void> {
    if (event.kind == EventKind::kCall) return host.evict();
    return complete(host, event);
  };
  EXPECT_EQ(shard_.ask(client, "get")->end, kTryAgain);
  EXPECT_EQ(seen("call get|[]"), 1 + static_cast<int>(Interruptions::kMost));
}

TEST_F(AgentSlotInterruptedTest, P6_TheTimeOfACallGoesOn) {
  shard_.restart({.call_timeout = milliseconds(10'000)});
  set_up();
  const auto answer = shard_.call(shard_.connect(), "get");
  shard_.loop.advance(milliseconds(6'000));
  EXPECT_EQ(deadline_ms_, 10'000U);
  evict();
  EXPECT_EQ(deadline_ms_, 4'000U);
  shard_.loop.advance(milliseconds(3'000));
  evict();
  EXPECT_EQ(deadline_ms_, 1'000U);
  shard_.loop.advance(milliseconds(999));
  EXPECT_EQ(answer->end, std::nullopt);
  shard_.loop.advance(milliseconds(2));
  EXPECT_EQ(answer->end, "error timeout: the agent did not answer in time");
}

TEST_F(AgentSlotInterruptedTest, P6_ItGoesOnWhileTheCallWaitsForItsClass) {
  shard_.restart({.call_timeout = milliseconds(10'000)});
  set_up();
  const auto client = shard_.connect();
  const auto first = shard_.call(client, "get");
  shard_.loop.advance(milliseconds(4'000));
  const auto second = shard_.ask(client, "get");
  take_away();
  shard_.loop.advance(milliseconds(5'999));
  EXPECT_EQ(first->end, std::nullopt);
  shard_.loop.advance(milliseconds(2));
  EXPECT_EQ(first->end, "error timeout: the agent did not answer in time");
  EXPECT_EQ(second->end, std::nullopt);
  hanging_.clear();
  put_back();
  EXPECT_EQ(second->end, "ok 2");
  shard_.loop.advance(milliseconds(10'000));
  EXPECT_EQ(second->end, "ok 2");
}

TEST_F(AgentSlotInterruptedTest, P6_ACallWaitsForItsClassAsItsClientDoes) {
  const auto answer = shard_.ask(shard_.connect(), "get");
  take_away();
  EXPECT_EQ(answer->end, std::nullopt);
  shard_.runtime().classes().give_up("counter");
  shard_.versions().class_is_gone("counter");
  shard_.settle();
  EXPECT_EQ(answer->end, "error unavailable: the class is not loaded");
}

TEST_F(AgentSlotInterruptedTest, P6_AMethodThatTheNextVersionDoesNotHaveIsNotFound) {
  const auto answer = shard_.ask(shard_.connect(), "get");
  shard_.script.on_event = [](HostCalls& host, const AgentEvent& event) -> Result<void> {
    if (event.kind == EventKind::kCall) return Error{Errc::kNotFound, "Method get does not exist"};
    return complete(host, event);
  };
  evict();
  EXPECT_EQ(answer->end, "error not_found: Method get does not exist");
}

TEST_F(AgentSlotInterruptedTest, P6_ASecondStartThatFailsAnswersTheCall) {
  const auto answer = shard_.ask(shard_.connect(), "get");
  shard_.script.on_create = [](HostCalls&) -> Result<void> { return Error{Errc::kPlugin, "no"}; };
  evict();
  EXPECT_EQ(answer->end, "error unavailable: the agent failed to start; the server's log says why");
}

TEST_F(AgentSlotInterruptedTest, P6_NothingComesAgainWhenTheServerStops) {
  const auto answer = shard_.ask(shard_.connect(), "get");
  shard_.restart();
  EXPECT_EQ(answer->end, "error closing: the agent was evicted (shutdown); try again");
}

TEST_F(AgentSlotInterruptedTest, P6_WhatWaitsToComeAgainIsToldWhenTheServerStops) {
  const auto answer = shard_.ask(shard_.connect(), "get");
  take_away();
  shard_.restart();
  EXPECT_EQ(answer->end, "error closing: the server is shutting down");
}

TEST_F(AgentSlotInterruptedTest, P6_NothingComesAgainAfterADestruction) {
  const auto answer = shard_.ask(shard_.connect(), "get");
  as_agent([](HostCalls& host) { ASSERT_TRUE(host.destroy()); });
  EXPECT_EQ(answer->end, "error not_found: the agent was destroyed");
  EXPECT_EQ(seen("call get|[]"), 1);
}

TEST_F(AgentSlotInterruptedTest, P6_NothingComesAgainWhenStorageHasFailed) {
  const auto answer = shard_.ask(shard_.connect(), "get");
  as_agent([](HostCalls& host) { host.storage_failed("the disk is gone"); });
  EXPECT_EQ(answer->end,
            "error internal: the agent's storage failed; do not count on any of this being saved");
  EXPECT_EQ(seen("call get|[]"), 1);
}

TEST_F(AgentSlotInterruptedTest, P3_WhatFindsNoRoomIsToldToTryAgain) {
  shard_.restart({.max_waiting = 3});
  set_up();
  const auto client = shard_.join();
  const auto first = shard_.call(client, "get", "[1]");
  const auto second = shard_.call(client, "get", "[2]");
  shard_.settle();
  hanging_.clear();
  shard_.script.on_result = [](HostCalls& host, const OperationResult&) { (void)host.evict(); };
  shard_.runtime().post(shard_.script.host->handle(), 1);
  shard_.loop.step();
  const auto waiting = {shard_.call(client, "get", "[3]"), shard_.call(client, "get", "[4]")};
  shard_.settle();
  EXPECT_EQ(first->end, "ok 2");
  EXPECT_EQ(second->end, kTryAgain);
  for (const auto& answer : waiting) EXPECT_EQ(answer->end, "ok 2");
}

TEST_F(AgentSlotInterruptedTest, P3_OnlySoManyBytesAreKept) {
  shard_.restart({.max_waiting_bytes = 100});
  set_up();
  const auto client = shard_.join();
  const auto small = shard_.call(client, "get", "[1]");
  const auto large = shard_.call(client, "get", "[" + std::string(98, ' ') + "]");
  shard_.settle();
  evict_and_answer();
  EXPECT_EQ(small->end, "ok 2");
  EXPECT_EQ(large->end, kTryAgain);
}

TEST_F(AgentSlotInterruptedTest, P3_AClientOfManyInterruptedCallsIsNotReadUntilTheyRun) {
  const auto client = shard_.join();
  for (int i = 0; i < 20; ++i) shard_.call(client, "get");
  shard_.settle();
  EXPECT_EQ(*client.sight, Sight{"handshake counter/a -"});
  take_away();
  EXPECT_EQ(client.sight->back(), "pause");
  put_back();
  EXPECT_EQ(client.sight->back(), "resume");
}

// ---- CONNECT ------------------------------------------------------------------------------------

class ConnectInterruptedTest : public AgentSlotInterruptedTest {
 protected:
  ConnectInterruptedTest() { hanging_ = {EventKind::kConnect}; }
};

TEST_F(ConnectInterruptedTest, P6_TheClientStaysAndItsConnectComesAgain) {
  const auto client = shard_.connect();
  shard_.shard().message(client.id, "hi", FrameKind::kText);
  const auto answer = shard_.call(client, "put");
  shard_.settle();
  history().clear();
  evict_and_answer();
  EXPECT_EQ(history(),
            (std::vector<std::string>{"destroyed", "start |", "connect /agents/counter/a|",
                                      "message |hi", "call put|[]"}))
      << "no CONNECTING, and what the client sent waits behind it";
  EXPECT_EQ(answer->end, "ok 2");
  EXPECT_EQ(*client.sight, Sight{"handshake counter/a -"}) << "one handshake";
}

TEST_F(ConnectInterruptedTest, P6_WhatTheClientSendsMeanwhileWaitsForTheSecondConnect) {
  const auto client = shard_.join();
  evict();
  history().clear();
  shard_.say(client, "hi");
  EXPECT_TRUE(history().empty());
  as_agent([this](HostCalls& host) {
    (void)host.complete(shard_.script.open_calls.back(), std::string_view());
  });
  EXPECT_EQ(history(), std::vector<std::string>{"message |hi"});
}

TEST_F(ConnectInterruptedTest, TagsFlagsHeadersAndAttachmentAreStillThere) {
  const auto usual = shard_.script.on_event;
  bool checked = false;
  shard_.script.on_event = [&](HostCalls& host, const AgentEvent& event) -> Result<void> {
    if (event.kind == EventKind::kConnecting) {
      EXPECT_TRUE(host.add_tag(event.connection, "vip"));
      EXPECT_TRUE(host.set_flags(event.connection, Connection::kReadonly));
    } else if (event.kind == EventKind::kConnect) {
      const extensions::Client* client = host.find_connection(event.connection);
      EXPECT_EQ(*find_header(client->headers, "x-test"), "1");
      EXPECT_TRUE(client->has_tag("vip") && client->readonly());
      if (life_ == 1) {
        EXPECT_TRUE(host.set_attachment(event.connection, "mine"));
      } else {
        EXPECT_EQ(client->attachment, "mine");
        checked = true;
      }
    }
    return usual(host, event);
  };
  const auto client = shard_.join();
  evict_and_answer();
  EXPECT_TRUE(checked);
}

TEST_F(ConnectInterruptedTest, AStateThatTheNextInstanceSetsIsToldOnce) {
  const auto client = shard_.join();
  const auto usual = shard_.script.on_event;
  shard_.script.on_event = [&](HostCalls& host, const AgentEvent& event) -> Result<void> {
    if (event.kind == EventKind::kStart) EXPECT_TRUE(host.set_state(0, "2"));
    return usual(host, event);
  };
  evict_and_answer();
  EXPECT_EQ(*client.sight, (Sight{"handshake counter/a -", "text state 2"}));
}

TEST_F(ConnectInterruptedTest, AClientThatLeavesMeanwhileIsConnectedOnceMoreAndThenClosed) {
  const auto client = shard_.connect();
  shard_.shard().message(client.id, "hi", FrameKind::kText);
  shard_.leave(client, 1000, "bye", true);
  history().clear();
  evict_and_answer();
  EXPECT_EQ(history(),
            (std::vector<std::string>{"destroyed", "start |", "connect /agents/counter/a|",
                                      "message |hi", "close bye|"}));
  EXPECT_EQ(shard_.shard().counts().connections, 0U);
}

TEST_F(ConnectInterruptedTest, P6_TheTimeOfAConnectGoesOn) {
  shard_.restart({.call_timeout = milliseconds(10'000)});
  set_up();
  const auto client = shard_.connect();
  shard_.loop.advance(milliseconds(6'000));
  take_away();
  shard_.loop.advance(milliseconds(4'001));
  EXPECT_EQ(client.sight->back(), "close 1012 the agent restarted while you connected");
  shard_.shard().disconnected(client.id, 1012, "", true);
  hanging_.clear();
  put_back();
  EXPECT_EQ(seen("close |"), 1) << "the agent knew it";
  EXPECT_EQ(shard_.shard().counts().connections, 0U);
}

TEST_F(ConnectInterruptedTest, AConnectThatEvictsItsAgentEachTimeComesToAnEnd) {
  shard_.script.on_event = [](HostCalls& host, const AgentEvent& event) -> Result<void> {
    if (event.kind == EventKind::kConnect) return host.evict();
    return complete(host, event);
  };
  const auto client = shard_.join();
  EXPECT_EQ(client.sight->back(), "close 1012 the agent restarted while you connected");
  EXPECT_EQ(seen("connect /agents/counter/a|"), 1 + static_cast<int>(Interruptions::kMost));
}

TEST_F(ConnectInterruptedTest, AClientWaitsForItsClassAndIsClosedWhenThatIsGivenUp) {
  const auto client = shard_.join();
  take_away();
  EXPECT_EQ(*client.sight, Sight{"handshake counter/a -"});
  shard_.runtime().classes().give_up("counter");
  shard_.versions().class_is_gone("counter");
  EXPECT_EQ(client.sight->back(), "close 1012 the class is not loaded");
  shard_.leave(client, 1012, "", true);
  EXPECT_EQ(shard_.shard().counts().connections, 0U);
}

TEST_F(ConnectInterruptedTest, AClientWhoseSecondConnectIsRefusedIsForgottenWhenItLeaves) {
  const auto client = shard_.join();
  bool fails = true;
  shard_.script.on_create = [&](HostCalls&) -> Result<void> {
    if (fails) return Error{Errc::kPlugin, "no"};
    return {};
  };
  evict();
  EXPECT_EQ(client.sight->back(),
            "close 1011 the agent failed to start; the server's log says why");
  fails = false;
  hanging_.clear();
  shard_.leave(client, 1011, "", true);
  EXPECT_EQ(seen("close |"), 1);
  EXPECT_EQ(shard_.shard().counts().connections, 0U);
}

TEST_F(ConnectInterruptedTest, ABrokenAgentStillClosesWhoWasConnecting) {
  const auto client = shard_.join();
  as_agent([](HostCalls& host) { host.storage_failed("the disk is gone"); });
  EXPECT_EQ(client.sight->back(), "close 1012 the agent restarted while you connected");
  EXPECT_EQ(seen("connect /agents/counter/a|"), 1);
}

}  // namespace
}  // namespace hearth::runtime
