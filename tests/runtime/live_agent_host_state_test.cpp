// The state in an agent's own transactions: no client, event or later turn sees a state that was
// rolled back.
#include "fakes.hpp"
#include "storage/plugin_sql.hpp"

#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

namespace hearth::runtime {
namespace {

using testing::ShardFixture;
using testing::Sight;

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
  const auto after_restart = shard_.join();
  EXPECT_EQ(after_restart.sight->front(), newcomer.sight->front()) << "what is on the disk";
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
  const auto client = shard_.join();
  EXPECT_EQ(*client.sight, Sight{"handshake counter/a 1"});
}

TEST_F(StateInTransactionTest, ADefaultStateIsShownAgain) {
  shard_.script.on_create = [](HostCalls& host) { return host.set_default_state("0"); };
  shard_.ask(shard_.connect(), "begin set:1 undo");
  EXPECT_EQ(seen_by_agent_, "0");
}

}  // namespace
}  // namespace hearth::runtime
