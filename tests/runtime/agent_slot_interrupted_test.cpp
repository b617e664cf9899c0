// An agent's slot while its class is not loaded; and which events an eviction interrupts, and which
// are delivered again: promise P6 of AgentSlot. The change to another version:
// class_rollout_test.cpp.
#include "fakes.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace hearth::runtime {
namespace {

using namespace testing;
using std::chrono::milliseconds;
using std::chrono::seconds;

// A class that is removed while its agents live, and comes back.
class AbsentClassTest : public ::testing::Test {
 protected:
  // Removes the class and its agents.
  void take_away() {
    served_ = shard_.runtime().classes().remove("counter");
    shard_.versions().leave(served_, EvictReason::kPluginRemoved, false);
    shard_.settle();
  }
  void put_back() {
    shard_.runtime().classes().put(served_);
    shard_.versions().class_is_back("counter");
    shard_.settle();
  }
  void give_up() {
    shard_.runtime().classes().give_up("counter");
    shard_.versions().class_is_gone("counter");
    shard_.settle();
  }
  [[nodiscard]] std::ptrdiff_t seen(const std::string& what) const {
    return std::ranges::count(shard_.script.history, what);
  }

  std::shared_ptr<const ServedClass> served_;
  ShardFixture shard_;
};

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
  give_up();
  EXPECT_EQ(shard_.shard().counts().connections, 0U);
  EXPECT_EQ(shard_.shard().counts().slots, 0U);
}

TEST_F(AgentSlotVersionsTest, ClientsOfAClassAndOfAllBelowItCanBeSentAway) {
  const auto client = shard_.connect();
  ConnectRequest request;
  request.target = "/agents/counter/a/sub/counter/b";
  const auto below = shard_.connect(kUsualAgent.child("Counter", "b"), std::move(request));
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
  shard_.script.on_event = on(EventKind::kRequest, hang);
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
  void restart(RuntimeLimits limits) {
    shard_.restart(limits);
    set_up();
  }
  void evict() {
    shard_.act([](HostCalls& host) { ASSERT_TRUE(host.evict()); });
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
  shard_.begin_act([](HostCalls& host) { (void)host.evict(); });
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
  shard_.act([this](HostCalls& host) {
    EXPECT_TRUE(host.emit(shard_.script.open_calls.at(0), "\"part\""));
  });
  evict_and_answer();
  EXPECT_EQ(answer->parts, std::vector<std::string>{"\"part\""});
  EXPECT_EQ(answer->end, kTryAgain);
  EXPECT_EQ(shard_.script.alive, 0) << "nothing is left to run";
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
  shard_.act([&](HostCalls& host) { EXPECT_TRUE(host.close(client.id, 4000, "enough")); });
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
  restart({.call_timeout = milliseconds(10'000)});
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
  restart({.call_timeout = milliseconds(10'000)});
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
  give_up();
  EXPECT_EQ(answer->end, "error unavailable: the class is not loaded");
}

TEST_F(AgentSlotInterruptedTest, P6_AMethodThatTheNextVersionDoesNotHaveIsNotFound) {
  const auto answer = shard_.ask(shard_.connect(), "get");
  shard_.script.on_event =
      on(EventKind::kCall, fail_with(Errc::kNotFound, "Method get does not exist"));
  evict();
  EXPECT_EQ(answer->end, "error not_found: Method get does not exist");
}

TEST_F(AgentSlotInterruptedTest, P6_ASecondStartThatFailsAnswersTheCall) {
  const auto answer = shard_.ask(shard_.connect(), "get");
  shard_.script.on_create = [](HostCalls&) -> Result<void> { return Error{Errc::kPlugin, "no"}; };
  evict();
  EXPECT_EQ(answer->end, kFailedToStart);
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
  shard_.act([](HostCalls& host) { ASSERT_TRUE(host.destroy()); });
  EXPECT_EQ(answer->end, "error not_found: the agent was destroyed");
  EXPECT_EQ(seen("call get|[]"), 1);
}

TEST_F(AgentSlotInterruptedTest, P6_NothingComesAgainWhenStorageHasFailed) {
  const auto answer = shard_.ask(shard_.connect(), "get");
  shard_.act([](HostCalls& host) { host.storage_failed("the disk is gone"); });
  EXPECT_EQ(answer->end, kStorageFailed);
  EXPECT_EQ(seen("call get|[]"), 1);
}

TEST_F(AgentSlotInterruptedTest, P3_WhatFindsNoRoomIsToldToTryAgain) {
  restart({.max_waiting = 3});
  const auto client = shard_.join();
  const auto first = shard_.call(client, "get", "[1]");
  const auto second = shard_.call(client, "get", "[2]");
  shard_.settle();
  hanging_.clear();
  shard_.begin_act([](HostCalls& host) { (void)host.evict(); });
  shard_.loop.step();
  const auto waiting = {shard_.call(client, "get", "[3]"), shard_.call(client, "get", "[4]")};
  shard_.settle();
  EXPECT_EQ(first->end, "ok 2");
  EXPECT_EQ(second->end, kTryAgain);
  for (const auto& answer : waiting) EXPECT_EQ(answer->end, "ok 2");
}

TEST_F(AgentSlotInterruptedTest, P3_OnlySoManyBytesAreKept) {
  restart({.max_waiting_bytes = 100});
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
  shard_.act([this](HostCalls& host) {
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
  restart({.call_timeout = milliseconds(10'000)});
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
  EXPECT_EQ(shard_.join().sight->back(), "close 1012 the agent restarted while you connected");
  EXPECT_EQ(seen("connect /agents/counter/a|"), 1 + static_cast<int>(Interruptions::kMost));
}

TEST_F(ConnectInterruptedTest, AClientWaitsForItsClassAndIsClosedWhenThatIsGivenUp) {
  const auto client = shard_.join();
  take_away();
  EXPECT_EQ(*client.sight, Sight{"handshake counter/a -"});
  give_up();
  EXPECT_EQ(client.sight->back(), "close 1012 the class is not loaded");
  shard_.leave(client, 1012, "", true);
  EXPECT_EQ(shard_.shard().counts().connections, 0U);
}

TEST_F(ConnectInterruptedTest, AClientWhoseSecondConnectIsRefusedIsForgottenWhenItLeaves) {
  const auto client = shard_.join();
  shard_.script.on_create = [](HostCalls&) -> Result<void> { return Error{Errc::kPlugin, "no"}; };
  evict();
  EXPECT_EQ(client.sight->back(), kClosedForFailedStart);
  shard_.script.on_create = nullptr;
  hanging_.clear();
  shard_.leave(client, 1011, "", true);
  EXPECT_EQ(seen("close |"), 1);
  EXPECT_EQ(shard_.shard().counts().connections, 0U);
}

TEST_F(ConnectInterruptedTest, ABrokenAgentStillClosesWhoWasConnecting) {
  const auto client = shard_.join();
  shard_.act([](HostCalls& host) { host.storage_failed("the disk is gone"); });
  EXPECT_EQ(client.sight->back(), "close 1012 the agent restarted while you connected");
  EXPECT_EQ(seen("connect /agents/counter/a|"), 1);
}

}  // namespace
}  // namespace hearth::runtime
