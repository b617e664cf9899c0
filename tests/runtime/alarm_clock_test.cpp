#include "runtime/alarm_clock.hpp"

#include "fakes.hpp"
#include "support/seeded_random.hpp"
#include "support/temp_directory.hpp"

#include <gtest/gtest.h>

#include <map>
#include <set>

namespace hearth::runtime {
namespace {

using std::chrono::milliseconds;

const storage::AgentKey kFirst{"Worker", "1"};
const storage::AgentKey kSecond{"Worker", "2"};

class AlarmClockTest : public ::testing::Test {
 protected:
  // Its wake is over, and the agent is cold again.
  void is_done(const storage::AgentKey& key) {
    alarms_.set_wake(key, {});
    awake_.erase(key);
    alarms_.give_back(held_[key], false);
  }
  [[nodiscard]] std::int64_t in(milliseconds wait) const {
    return unix_millis(loop_.clock().wall_now()) + wait.count();
  }

  std::set<storage::AgentKey> awake_;
  std::map<storage::AgentKey, HeldPermits> held_;
  std::vector<std::string> seen_;

  testing::ManualLoop loop_;
  hearth::testing::TempDirectory directory_;
  storage::Directory rows_{directory_.path() / "host.db"};
  durable::WakeIndex wakes_{rows_};
  hearth::testing::SeededRandom random_{7};
  Metrics metrics_;
  ShardMetrics shard_metrics_{metrics_};
  PacedSteps steps_{loop_, 20};
  AlarmClock alarms_{
      {loop_, wakes_, steps_, shard_metrics_, random_},
      {.is_cold = [this](const storage::AgentKey& key) { return !awake_.contains(key); },
       .look = [this](const storage::AgentKey& key) { seen_.push_back("look " + key.name); },
       .let_recover =
           [this](const storage::AgentKey& key) {
             alarms_.take(held_[key], PermitKind::kRecovery);
             seen_.push_back("let recover " + key.name);
           },
       .wake =
           [this](const storage::AgentKey& key, PermitKind kind) {
             alarms_.take(held_[key], kind);
             awake_.insert(key);
             seen_.push_back((kind == PermitKind::kWaking ? "wake " : "recover ") + key.name);
           }},
      1,
      1};
};

TEST_F(AlarmClockTest, AColdAgentIsWokenAtItsMomentAndNotBefore) {
  alarms_.start();
  alarms_.set_wake(kFirst, {false, in(milliseconds(500))});
  loop_.advance(milliseconds(499));
  EXPECT_TRUE(seen_.empty());
  loop_.advance(milliseconds(1));
  EXPECT_EQ(seen_, std::vector<std::string>{"wake 1"});
  EXPECT_TRUE(held_[kFirst].waking);
}

TEST_F(AlarmClockTest, NoneIsWokenBeforeItStartsNorAfterItStops) {
  alarms_.set_wake(kFirst, {false, in(milliseconds(10))});
  loop_.advance(milliseconds(100));
  EXPECT_TRUE(seen_.empty());
  alarms_.start();
  alarms_.stop();
  loop_.advance(milliseconds(100));
  EXPECT_TRUE(seen_.empty());
}

TEST_F(AlarmClockTest, ALiveAgentIsToldToLook) {
  awake_.insert(kFirst);
  alarms_.start();
  alarms_.set_wake(kFirst, {false, in(milliseconds(10))});
  loop_.advance(milliseconds(10));
  EXPECT_EQ(seen_, std::vector<std::string>{"look 1"});
}

TEST_F(AlarmClockTest, ASecondOneWaitsForThePermitOfTheFirst) {
  alarms_.start();
  alarms_.set_wake(kFirst, {false, in(milliseconds(10))});
  alarms_.set_wake(kSecond, {false, in(milliseconds(20))});
  loop_.advance(milliseconds(100));
  EXPECT_EQ(seen_, std::vector<std::string>{"wake 1"});
  EXPECT_EQ(shard_metrics_.waiting_for_wake.value(), 1);
  is_done(kFirst);
  loop_.settle();
  EXPECT_EQ(seen_, (std::vector<std::string>{"wake 1", "wake 2"}));
}

TEST_F(AlarmClockTest, InterruptedWorkNeedsThePermitToRecoverAndDueTimeTheOther) {
  alarms_.start();
  alarms_.rest(kFirst, {}, {}, milliseconds(0));
  alarms_.set_wake(kFirst, {true, std::nullopt});
  alarms_.set_wake(kSecond, {false, in(milliseconds(10))});
  alarms_.rest(kFirst, {true, std::nullopt}, {}, milliseconds(0));
  loop_.advance(milliseconds(10));
  EXPECT_EQ(seen_, (std::vector<std::string>{"recover 1", "wake 2"}));
}

TEST_F(AlarmClockTest, ALiveAgentRecoversWhenThePermitIsFree) {
  awake_ = {kFirst, kSecond};
  alarms_.start();
  alarms_.ask_to_recover(kFirst, held_[kFirst]);
  alarms_.ask_to_recover(kSecond, held_[kSecond]);
  EXPECT_TRUE(held_[kFirst].recovery);
  EXPECT_FALSE(held_[kSecond].recovery);
  alarms_.give_back(held_[kFirst], true);
  loop_.settle();
  EXPECT_TRUE(seen_.empty()) << "the first one still recovers";
  alarms_.give_back(held_[kFirst], false);
  loop_.settle();
  EXPECT_EQ(seen_, std::vector<std::string>{"let recover 2"});
  EXPECT_TRUE(held_[kSecond].recovery);
}

TEST_F(AlarmClockTest, WithoutRoomNoneIsWokenForAWhile) {
  alarms_.start();
  alarms_.no_room_until(loop_.clock().steady_now() + milliseconds(300));
  alarms_.set_wake(kFirst, {false, in(milliseconds(10))});
  loop_.advance(milliseconds(1'009));
  EXPECT_TRUE(seen_.empty());
  loop_.advance(milliseconds(1));
  EXPECT_EQ(seen_, std::vector<std::string>{"wake 1"});
}

TEST_F(AlarmClockTest, AnAgentThatFailsAgainIsLeftAloneForLonger) {
  const milliseconds first = alarms_.wait_after_failure(kFirst);
  const milliseconds second = alarms_.wait_after_failure(kFirst);
  EXPECT_GE(first, milliseconds(4'000));
  EXPECT_GE(second, milliseconds(8'000));
  alarms_.forget_failures(kFirst);
  EXPECT_LT(alarms_.wait_after_failure(kFirst), milliseconds(8'000));
}

TEST_F(AlarmClockTest, AnAgentWithNothingToDoIsNotLookedAtAgain) {
  alarms_.start();
  alarms_.look_again(kFirst, milliseconds(10));
  loop_.advance(milliseconds(100));
  EXPECT_TRUE(seen_.empty());
}

TEST_F(AlarmClockTest, AClockThatIsSetBackDelaysNone) {
  alarms_.start();
  alarms_.set_wake(kFirst, {false, in(milliseconds(10'000))});
  loop_.jump(std::chrono::hours(-1));
  alarms_.set_wake(kSecond, {});  // notices
  loop_.advance(milliseconds(10));
  EXPECT_EQ(seen_, std::vector<std::string>{"wake 1"}) << "its rows may follow the clock";
}

TEST_F(AlarmClockTest, AClockThatIsSetBackWhileTheServerIsDownDelaysNone) {
  alarms_.start();
  alarms_.set_wake(kFirst, {false, in(std::chrono::hours(1))});
  for (int seconds = 0; seconds < 300; ++seconds) loop_.advance(milliseconds(1'000));
  const auto next_start = [this](milliseconds jump) {
    durable::WakeIndex index(rows_);
    const std::int64_t now = in(jump);
    index.load(now, [](const auto&) { return true; }, random_);
    return index.due(now).has_value();
  };
  EXPECT_FALSE(next_start(milliseconds(0)));
  alarms_.stop();  // notes the time
  EXPECT_FALSE(next_start(milliseconds(0)));
  EXPECT_TRUE(next_start(milliseconds(-1)));
}

TEST_F(AlarmClockTest, WhileNoneMustBeAwakeTheTimeIsNotWritten) {
  alarms_.start();
  loop_.advance(std::chrono::hours(1));
  alarms_.stop();
  EXPECT_EQ(rows_.seen_ms(), std::nullopt);
}

}  // namespace
}  // namespace hearth::runtime
