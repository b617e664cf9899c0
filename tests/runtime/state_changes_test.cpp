// An agent whose handler of STATE_CHANGED sets the state itself: the limit of that, and its effect
// on others.
#include "fakes.hpp"
#include "runtime/agent_slot.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace hearth::runtime {
namespace {

class StateChangesTest : public ::testing::Test {
 protected:
  StateChangesTest() { shard_.script.watches_state = true; }

  // STATE_CHANGED sets the state `times` times more, each time; everything is completed at once.
  void change_again(unsigned times) {
    shard_.script.on_event =
        do_on(EventKind::kStateChanged, [this, times](HostCalls& host, const AgentEvent&) {
          ++handled_;
          set_state(host, times);
          if (on_handled_) on_handled_();
        });
  }

  // The same after a wait of no time: `times` in the one turn that follows it.
  void change_after_a_wait(unsigned times) {
    shard_.script.on_event =
        on(EventKind::kStateChanged, [this](HostCalls& host, const AgentEvent& event) {
          ++handled_;
          if (on_handled_) on_handled_();
          EXPECT_TRUE(host.submit(HEARTH_OP_SLEEP, std::string(8, '\0'), event.call));
          return Result<void>();
        });
    shard_.script.on_result = [this, times](HostCalls& host, const OperationResult& result) {
      set_state(host, times);
      EXPECT_TRUE(host.complete(result.token, std::string_view()));
    };
  }

  void set_state(HostCalls& host, unsigned times) {
    for (unsigned i = 0; i < times; ++i) {
      const Result<void> set = host.set_state(0, std::to_string(++value_));
      if (set.has_error()) refusals_.push_back(set.error());
    }
  }

  testing::ShardFixture shard_;
  unsigned handled_ = 0;
  int value_ = 0;
  std::vector<Error> refusals_;
  std::function<void()> on_handled_;
};

TEST_F(StateChangesTest, AHandlerThatAlwaysSetsTheStateEndsWithAnError) {
  change_again(1);
  const auto client = shard_.join();
  EXPECT_EQ(shard_.store(client, "0")->end, "ok ");
  EXPECT_EQ(handled_, 101U) << "for the client's change, and for a hundred of its own";
  ASSERT_EQ(refusals_.size(), 1U);
  EXPECT_EQ(refusals_[0].code, Errc::kLimitExceeded);
  EXPECT_EQ(shard_.logger.count("agent.state_loop"), 1U);
  EXPECT_EQ(shard_.script.host->state(), "100") << "what was stored before stays";
  (void)shard_.store(client, "0");
  EXPECT_EQ(handled_, 202U) << "each change from elsewhere begins anew";
}

TEST_F(StateChangesTest, SoDoesOneThatSetsItTwiceEachTime) {
  change_again(2);
  (void)shard_.store(shard_.connect(), "0");
  EXPECT_EQ(handled_, 101U);
  EXPECT_EQ(refusals_.size(), 102U);
}

TEST_F(StateChangesTest, OneThatWaitsFirstEndsAsWell) {
  change_after_a_wait(1);
  const auto client = shard_.connect();
  (void)shard_.store(client, "0");
  EXPECT_EQ(handled_, 101U);
  ASSERT_EQ(refusals_.size(), 1U);
  EXPECT_EQ(refusals_[0].code, Errc::kLimitExceeded);
  EXPECT_EQ(shard_.logger.count("agent.state_loop"), 1U);
  EXPECT_EQ(shard_.script.host->state(), "100");
  (void)shard_.store(client, "0");
  EXPECT_EQ(handled_, 202U) << "a change from elsewhere begins anew";
}

TEST_F(StateChangesTest, SoDoesOneThatWaitsAndSetsItTwiceEachTime) {
  change_after_a_wait(2);
  (void)shard_.store(shard_.connect(), "0");
  EXPECT_EQ(handled_, 201U) << "a hundred handlers have set it twice";
  EXPECT_EQ(refusals_.size(), 202U);
}

TEST_F(StateChangesTest, OneHandlerMayShowItsProgress) {
  constexpr int kSteps = 300;
  int steps = 0;
  change_after_a_wait(1);
  const auto first = shard_.script.on_event;
  shard_.script.on_event = [this, first](HostCalls& host, const AgentEvent& event) {
    if (event.kind != EventKind::kStateChanged || handled_ == 0) return first(host, event);
    return complete(host, event);
  };
  shard_.script.on_result = [&](HostCalls& host, const OperationResult& result) {
    EXPECT_TRUE(host.set_state(0, std::to_string(++steps)));
    if (steps == kSteps) {
      EXPECT_TRUE(host.complete(result.token, std::string_view()));
    } else {
      EXPECT_TRUE(host.submit(HEARTH_OP_SLEEP, std::string(8, '\0'), result.token));
    }
  };
  (void)shard_.store(shard_.connect(), "0");
  EXPECT_EQ(steps, kSteps);
  EXPECT_EQ(shard_.logger.count("agent.state_loop"), 0U);
}

// The handler answers each change with another change, and has begun a fiber that changes the state
// for ever.
TEST_F(StateChangesTest, WhatAFiberOfTheHandlerChangesLaterBeginsAnew) {
  constexpr int kRounds = 300;
  std::uint64_t fiber = 0;
  int rounds = 0;
  const auto sleep = [&](HostCalls& host) {
    host.works_for(fiber, 0);
    EXPECT_TRUE(host.submit(HEARTH_OP_SLEEP, std::string(8, '\0'), 0));
    host.works_for(0, 0);
  };
  shard_.script.on_event =
      do_on(EventKind::kStateChanged, [&](HostCalls& host, const AgentEvent& event) {
        if (fiber == 0) {
          const auto started = host.start_fiber("poller");
          EXPECT_TRUE(started);
          fiber = started->handle;
          sleep(host);
        }
        if (!event.body.starts_with("-")) {
          if (host.set_state(0, "-" + std::string(event.body)).has_error()) ++handled_;
        }
      });
  shard_.script.on_result = [&](HostCalls& host, const OperationResult&) {
    EXPECT_TRUE(host.set_state(0, std::to_string(++rounds)));
    if (rounds < kRounds) sleep(host);
  };
  (void)shard_.store(shard_.connect(), "7");
  EXPECT_EQ(rounds, kRounds);
  EXPECT_EQ(handled_, 0U) << "none was refused";
  EXPECT_EQ(shard_.logger.count("agent.state_loop"), 0U);
}

TEST_F(StateChangesTest, AnOperatorsEvictionEndsOneThatGoesOn) {
  change_after_a_wait(1);
  on_handled_ = [this] {  // before the wait is over: what is set then has to wait for the end
    if (handled_ == 10) shard_.loop.post([this] { shard_.admin().evict(testing::kUsualAgent); });
  };
  (void)shard_.store(shard_.connect(), "0");
  EXPECT_EQ(handled_, 10U);
  EXPECT_EQ(value_, 10);
  EXPECT_EQ(std::ranges::count(shard_.script.history, "start |"), 1) << "nothing woke it again";
  EXPECT_EQ(shard_.shard().counts().live, 0U);
}

TEST_F(StateChangesTest, AHandlerThatSettlesTheStateIsNotRefused) {
  change_again(1);
  on_handled_ = [this] {
    if (value_ == 3) shard_.script.on_event = nullptr;
  };
  (void)shard_.store(shard_.connect(), "0");
  EXPECT_TRUE(refusals_.empty());
  EXPECT_EQ(shard_.script.host->state(), "3");
}

TEST_F(StateChangesTest, P7_OneTurnOfTheLoopBringsSoManyEvents) {
  change_again(1);
  const auto client = shard_.join();
  bool others_ran = false;
  unsigned handled_before = 0;
  on_handled_ = [&] {
    if (handled_ != 1) return;
    shard_.loop.post([&] {
      others_ran = true;
      handled_before = handled_;
    });
  };
  (void)shard_.write_state(client, "0");
  EXPECT_LE(handled_, AgentTurns::kMostAtOnce);
  shard_.settle();
  EXPECT_TRUE(others_ran);
  EXPECT_LE(handled_before, AgentTurns::kMostAtOnce);
  EXPECT_GT(handled_, AgentTurns::kMostAtOnce) << "the others followed";
}

TEST_F(StateChangesTest, P7_OneTurnOfTheLoopTakesSoLong) {
  change_again(1);
  const auto client = shard_.join();
  on_handled_ = [this] { shard_.loop.let_pass(AgentTurns::kLongestAtOnce); };
  (void)shard_.write_state(client, "0");
  EXPECT_EQ(handled_, 1U);
  shard_.settle();
  EXPECT_EQ(handled_, 101U);
}

TEST_F(StateChangesTest, P7_OrderHoldsOverTurns) {
  std::vector<std::string> seen;
  shard_.script.on_event = [&](HostCalls& host, const AgentEvent& event) -> Result<void> {
    if (event.kind == EventKind::kStart) return testing::keep_open(shard_.script)(host, event);
    if (event.kind == EventKind::kMessage) seen.emplace_back(event.body);
    return complete(host, event);
  };
  const auto client = shard_.connect();
  std::vector<std::string> sent;
  for (unsigned i = 0; i < 3 * AgentTurns::kMostAtOnce; ++i) {
    sent.push_back(std::to_string(i));
    shard_.shard().message(client.id, sent.back(), FrameKind::kText);
  }
  shard_.begin_act([this](HostCalls& host) {
    (void)host.complete(shard_.script.open_calls[0], std::string_view());
  });
  shard_.loop.step();
  EXPECT_LE(seen.size(), AgentTurns::kMostAtOnce);
  sent.emplace_back("late");
  shard_.shard().message(client.id, "late", FrameKind::kText);
  EXPECT_LE(seen.size(), AgentTurns::kMostAtOnce) << "a frame that comes brings no further turn";
  shard_.settle();
  EXPECT_EQ(seen, sent);
}

TEST_F(StateChangesTest, WhatATurnThatFailedHasSetIsNoNewsToTheNextInstance) {
  bool fails = true;
  shard_.script.on_event = [&](HostCalls& host, const AgentEvent& event) -> Result<void> {
    if (event.kind == EventKind::kRequest && std::exchange(fails, false)) {
      EXPECT_FALSE(host.set_state(0, "1").has_error());
      host.storage_failed("the test says so");
    }
    return complete(host, event);
  };
  const auto failed = shard_.request("POST");
  const auto next = shard_.request("POST");
  shard_.settle();
  EXPECT_EQ(next->end, "ok ");
  EXPECT_EQ(std::ranges::count(shard_.script.history, "start |"), 2);
  EXPECT_EQ(std::ranges::count(shard_.script.history, "state_changed |1"), 0);
  EXPECT_EQ(shard_.script.host->state(), std::nullopt);
}

TEST_F(StateChangesTest, WhatWasCommittedBeforeATurnThatFailedIsNewsToTheNextInstance) {
  shard_.restart({}, settings_with(&ClassSettings::max_events, 1));
  bool hangs = true;
  shard_.script.on_event = [&](HostCalls& host, const AgentEvent& event) -> Result<void> {
    if (event.kind == EventKind::kRequest && std::exchange(hangs, false)) {
      EXPECT_FALSE(host.set_state(0, "1").has_error());
      return {};
    }
    return complete(host, event);
  };
  (void)shard_.ask("POST");
  ASSERT_EQ(std::ranges::count(shard_.script.history, "state_changed |1"), 0) << "it has to wait";
  shard_.act([](HostCalls& host) {
    EXPECT_FALSE(host.set_state(0, "2").has_error());
    host.storage_failed("the test says so");
  });
  ASSERT_EQ(std::ranges::count(shard_.script.history, "start |"), 2);
  EXPECT_EQ(std::ranges::count(shard_.script.history, "state_changed |1"), 1);
  EXPECT_EQ(std::ranges::count(shard_.script.history, "state_changed |2"), 0);
  EXPECT_EQ(shard_.script.host->state(), "1");
}

}  // namespace
}  // namespace hearth::runtime
