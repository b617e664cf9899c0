// The state of a live agent: the trace of a change, from the client that writes it to the clients
// that get it; what clients show in the end; and the agent's own transactions, of which no client,
// event or later turn sees a state that was rolled back. Contents and permissions of a state:
// tests/extensions/state_test.cpp.
#include "fakes.hpp"
#include "storage/plugin_sql.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hearth::runtime {
namespace {

using testing::Answer;
using testing::FakeSink;
using testing::kUsualAgent;
using testing::ShardFixture;
using testing::Sight;

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
    return shard_.settled(shard_.connect(
        kUsualAgent, ConnectRequest{.id = "me",
                                    .target = "/agents/counter/a",
                                    .headers = {{"traceparent", std::string(trace)}}}));
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

// One turn: "set:JSON", "send:TEXT", "begin"; "keep" and "undo" end the innermost savepoint,
// "undo:N" the one of depth N.
struct Turn {
  const char* name;
  const char* program;
  const char* state;              // afterwards, "-" for none
  Sight frames;                   // what a client saw of it
  std::vector<std::string> told;  // STATE_CHANGED
};

void PrintTo(const Turn& turn, std::ostream* out) {
  *out << turn.program;
}

class StateInTransactionTest : public ::testing::TestWithParam<Turn> {
 protected:
  StateInTransactionTest() {
    shard_.script.watches_state = true;
    shard_.script.on_event = [this](HostCalls& host, const AgentEvent& event) -> Result<void> {
      if (event.kind == EventKind::kStateChanged) told_.emplace_back(event.body);
      if (event.kind == EventKind::kCall) run(host, std::string(event.name));
      return complete(host, event);
    };
  }

  void run(HostCalls& host, const std::string& program) {
    std::vector<storage::SavepointHandle> open;
    std::istringstream words(program);
    for (std::string word; words >> word;) {
      const std::string argument = word.substr(std::min(word.find(':') + 1, word.size()));
      if (word.starts_with("set:")) EXPECT_TRUE(host.set_state(0, argument));
      if (word.starts_with("send:"))
        EXPECT_TRUE(host.broadcast(FrameKind::kText, argument, "", {}));
      if (word == "begin") open.push_back(host.sql().begin_savepoint().value());
      if (word == "keep") EXPECT_TRUE(host.sql().release(open.back()));
      if (word == "undo") EXPECT_TRUE(host.sql().rollback_to(open.back()));
      if (word == "keep" || word == "undo") open.pop_back();
      if (!word.starts_with("undo:")) continue;
      open.resize(std::stoul(argument));
      EXPECT_TRUE(host.sql().rollback_to(open.back()));
      open.pop_back();
    }
    seen_by_agent_ = host.state().value_or("-");
  }

  std::vector<std::string> told_;
  std::string seen_by_agent_;
  ShardFixture shard_;
};

TEST_P(StateInTransactionTest, ARollbackTakesBackTheStateAndAllThatTellsOfIt) {
  const Turn& turn = GetParam();
  const auto watcher = shard_.join("a", "watcher");
  watcher.sight->clear();
  EXPECT_EQ(shard_.ask(watcher, turn.program)->end, "ok ");
  EXPECT_EQ(seen_by_agent_, turn.state);
  EXPECT_EQ(*watcher.sight, turn.frames);
  EXPECT_EQ(told_, turn.told);
  const auto newcomer = shard_.join("a", "newcomer");
  EXPECT_EQ(newcomer.sight->front(), std::string("handshake counter/a ") + turn.state);
  shard_.restart();
  EXPECT_EQ(shard_.join().sight->front(), newcomer.sight->front()) << "what is on the disk";
}

INSTANTIATE_TEST_SUITE_P(
    Turns, StateInTransactionTest,
    ::testing::Values(
        Turn{"Kept", "begin set:1 keep", "1", {"text state 1"}, {"1"}},
        Turn{"Undone", "begin set:1 undo", "-", {}, {}},
        Turn{"LeftOpen", "begin set:1", "1", {"text state 1"}, {"1"}},
        Turn{"SetBefore", "set:1 begin set:2 undo", "1", {"text state 1"}, {"1"}},
        Turn{"SetBeforeAndNotInside", "set:1 begin undo", "1", {"text state 1"}, {"1"}},
        Turn{"SetAfter",
             "set:1 begin set:2 undo set:3",
             "3",
             {"text state 1", "text state 3"},
             {"1", "3"}},
        Turn{"SetAgainInside", "begin set:1 set:2 undo set:2", "2", {"text state 2"}, {"2"}},
        Turn{"InnerUndone",
             "begin set:1 begin set:2 undo set:3 keep",
             "3",
             {"text state 1", "text state 3"},
             {"1", "3"}},
        Turn{"InnerKeptOuterUndone",
             "set:0 begin set:1 begin set:2 keep undo",
             "0",
             {"text state 0"},
             {"0"}},
        Turn{"OuterUndoneWithTheInnerOpen", "begin set:1 begin set:2 undo:1", "-", {}, {}},
        Turn{"OneAfterTheOther",
             "begin set:1 keep begin set:2 undo begin set:3 keep",
             "3",
             {"text state 1", "text state 3"},
             {"1", "3"}},
        // Frames of the agent's own are its word, not a copy of the state.
        Turn{"FramesOfTheAgentsOwnLeave",
             "begin send:a set:1 send:b undo send:c",
             "-",
             {"text a", "text b", "text c"},
             {}}),
    [](const auto& info) { return info.param.name; });

TEST_F(StateInTransactionTest, ASavepointThatOnConnectingLeavesOpenIsKept) {
  shard_.script.on_event = [](HostCalls& host, const AgentEvent& event) -> Result<void> {
    static storage::SavepointHandle left_open;
    if (event.kind == EventKind::kConnecting) {
      left_open = host.sql().begin_savepoint().value();
      EXPECT_TRUE(host.set_state(0, "1"));
    }
    if (event.kind == EventKind::kConnect)
      EXPECT_EQ(host.sql().rollback_to(left_open).error().code, Errc::kInvalidArgument);
    return complete(host, event);
  };
  EXPECT_EQ(*shard_.join().sight, Sight{"handshake counter/a 1"});
}

TEST_F(StateInTransactionTest, ADefaultStateIsShownAgain) {
  shard_.script.on_create = [](HostCalls& host) { return host.set_default_state("0"); };
  shard_.ask(shard_.connect(), "begin set:1 undo");
  EXPECT_EQ(seen_by_agent_, "0");
}

}  // namespace
}  // namespace hearth::runtime
