// Operations that are not begun again.
#include "durable/operations_fixture.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace hearth::durable {
namespace {

using namespace std::chrono_literals;

class OperationsLostTest : public OperationsFixture {
 protected:
  OperationBegun begin_by_key(Effect effect, std::chrono::milliseconds horizon = 0ms,
                              bool can_resume = false) {
    OperationRequest request{.kind = "charge"};
    const std::string key = std::to_string(++keys_);
    request.key = key;
    request.effect = effect;
    request.can_resume = can_resume;
    request.horizon_ms = static_cast<std::uint64_t>(horizon.count());
    return begin_request(request);
  }
  OperationBegun begin_in(FiberHandle fiber, Effect effect) {
    OperationRequest request{.effect = effect, .fiber = fiber, .kind = "charge"};
    if (effect == Effect::kKeyed) request.horizon_ms = 1000;
    return begin_request(request);
  }
  void give_up() {
    ledger_->give_up_lost(true);
    database_->commit();
  }
  // The agent hears of one.
  void hear(const std::string& id) {
    const auto unknown = ledger_->unknown().next_untold().value();
    EXPECT_EQ(unknown.id, id);
    ledger_->unknown().told(id, true);
    database_->commit();
  }

  int keys_ = 0;
};

struct OfNoFiber {
  const char* name;
  Effect effect;
  std::chrono::milliseconds horizon;
  bool has_answer;  // whose rest can be asked for
  std::chrono::milliseconds moment;
  const char* end;
};

TEST_F(OperationsLostTest, P12_OneOfNoFiberIsGivenUpWhenItsTimeIsOver) {
  for (const OfNoFiber& each : {
           OfNoFiber{"keyed", Effect::kKeyed, 1s, false, 1s, "unknown"},
           OfNoFiber{"keyed for long", Effect::kKeyed, 48h, false, 48h, "unknown"},
           OfNoFiber{"keyed, with an answer", Effect::kKeyed, 1s, true, 24h, "unknown"},
           OfNoFiber{"keyed for long, with one", Effect::kKeyed, 48h, true, 48h, "unknown"},
           OfNoFiber{"probe", Effect::kProbe, 0s, false, 24h, "unknown"},
           OfNoFiber{"unsafe, with an answer", Effect::kUnsafe, 0s, true, 24h, "unknown"},
           OfNoFiber{"idempotent", Effect::kIdempotent, 0s, false, 24h, "none"},
           OfNoFiber{"read", Effect::kRead, 0s, false, 24h, "none"},
       }) {
    SCOPED_TRACE(each.name);
    const std::int64_t moment = now() + each.moment.count();
    const OperationBegun begun = begin_by_key(each.effect, each.horizon, each.has_answer);
    if (each.has_answer) {
      EXPECT_TRUE(ledger_->requests().dispatched({.id = begun.id}));
      ledger_->requests().answered(begun.id, 200, std::nullopt, R"({"status":200})");
      database_->commit();
    }
    const Wake running = ledger_->wake();
    EXPECT_TRUE(running.working || (running.at_ms && *running.at_ms <= moment));
    crash_all();
    EXPECT_EQ(state(begun.id), "interrupted");
    EXPECT_EQ(ledger_->wake().at_ms, moment);
    EXPECT_FALSE(ledger_->wake().working);
    clock_.advance(each.moment - 1ms);
    EXPECT_FALSE(ledger_->due());
    clock_.advance(1ms);
    EXPECT_TRUE(ledger_->due());
    give_up();
    EXPECT_EQ(state(begun.id), each.end);
    EXPECT_EQ(ledger_->wake().at_ms, std::nullopt);
    if (each.end == std::string("unknown")) hear(begun.id);
    EXPECT_FALSE(ledger_->due());
  }
}

TEST_F(OperationsLostTest, P12_OneOfNoFiberIsGivenUpIfTheClockWasSetBackByMoreThanADay) {
  for (const Effect effect : {Effect::kProbe, Effect::kIdempotent}) {
    SCOPED_TRACE(static_cast<int>(effect));
    const OperationBegun begun = begin_by_key(effect);
    const WallTime then = clock_.wall_now();
    clock_.set_wall(then - 24h);
    crash_all();
    EXPECT_EQ(state(begun.id), "interrupted");
    clock_.set_wall(then - 25h);
    crash_all();
    EXPECT_EQ(state(begun.id), effect == Effect::kProbe ? "unknown" : "none");
    if (effect == Effect::kProbe) hear(begun.id);
    clock_.set_wall(then);
  }
}

TEST_F(OperationsLostTest, P12_OneThatRunsBeyondItsMomentIsJudgedAtItsEnd) {
  const OperationBegun begun = begin_by_key(Effect::kKeyed, 1s);
  clock_.advance(2s);
  give_up();
  EXPECT_EQ(state(begun.id), "running");
  EXPECT_FALSE(ledger_->due());
  EXPECT_TRUE(ledger_->wake().working) << "if the process ends, it is unknown";
  EXPECT_EQ(settle(begun, OperationOutcome::kCutOff), OperationState::kInterrupted);
  EXPECT_TRUE(ledger_->due());
  give_up();
  EXPECT_EQ(state(begun.id), "unknown");
  hear(begun.id);
}

TEST_F(OperationsLostTest, P12_OneThatIsCutOffBehindTheEndOfItsFiberIsGivenUp) {
  for (const Effect effect : {Effect::kKeyed, Effect::kProbe}) {
    const std::string fiber = "f" + std::to_string(static_cast<int>(effect));
    const FiberHandle handle = start(fiber).fiber;
    const OperationBegun begun = begin_in(handle, effect);
    settle(handle, FiberStatus::kCompleted);
    give_up();
    EXPECT_EQ(state(begun.id), "running");
    settle(begun, OperationOutcome::kCutOff);
    EXPECT_TRUE(ledger_->due());
    give_up();
    EXPECT_EQ(state(begun.id), "unknown");
    hear(begun.id);
  }
}

TEST_F(OperationsLostTest, TheIndexIsExactWhenTheAgentLeaves) {
  const OperationBegun first = begin_by_key(Effect::kKeyed, 1h);
  const std::int64_t moment = unix_millis(clock_.wall_now() + 1h);
  EXPECT_EQ(ledger_->wake().at_ms, moment);
  settle(first, OperationOutcome::kCompleted);
  clock_.advance(1s);
  const OperationBegun second = begin_by_key(Effect::kKeyed, 1h);
  EXPECT_EQ(ledger_->wake().at_ms, moment) << "no write for each operation";
  ledger_->close();
  EXPECT_EQ(ledger_->wake().at_ms, moment + 1000);
  open_ledger();
  const OperationRequest again{
      .effect = Effect::kKeyed, .horizon_ms = 1000, .kind = "charge", .id = second.id};
  settle(begin_request(again), OperationOutcome::kCompleted);
  ledger_->close();
  EXPECT_TRUE(ledger_->wake().none());
}

}  // namespace
}  // namespace hearth::durable
