// Every kind of jobs on the shared policy, by one table: what a kill of the server, an end on
// purpose and too many kills do to a job. (A crash in a job: extensions/work_scenarios_test.cpp.)
#include "durable/counted_jobs.hpp"

#include "durable/alarms.hpp"
#include "durable/fibers.hpp"
#include "durable/notices.hpp"
#include "durable/queue.hpp"
#include "support/manual_clock.hpp"
#include "support/seeded_random.hpp"
#include "support/temp_directory.hpp"

#include <sqlite3.h>

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace hearth::durable {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

// One kind with one job that is due.
class Kind {
 public:
  virtual ~Kind() = default;
  virtual WorkPart& part() = 0;
  virtual void add() = 0;
  virtual bool begin() = 0;  // false: nothing begins
  virtual std::vector<GivenUp> given_up() = 0;
};

struct World {
  hearth::testing::TempDirectory directory;
  hearth::testing::ManualClock clock;
  hearth::testing::SeededRandom random{7};
  std::unique_ptr<storage::AgentDatabase> database;
};

class QueueKind final : public Kind {
 public:
  explicit QueueKind(World& world) : queue_(*world.database, world.clock, world.random, {}) {
    queue_.load();
  }
  WorkPart& part() override { return queue_; }
  void add() override { ASSERT_TRUE(queue_.push({.callback = "a"})); }
  bool begin() override { return queue_.begin_next().has_value(); }
  std::vector<GivenUp> given_up() override { return queue_.take_given_up(); }

 private:
  Queue queue_;
};

class NoticeKind final : public Kind {
 public:
  explicit NoticeKind(World& world) : notices_(*world.database, world.clock, world.random) {
    notices_.load();
  }
  WorkPart& part() override { return notices_; }
  void add() override { ASSERT_TRUE(notices_.push({"Room", "a", "note", "[]", ""})); }
  bool begin() override { return notices_.begin_next().has_value(); }
  std::vector<GivenUp> given_up() override { return notices_.take_given_up(); }

 private:
  Notices notices_;
};

class AlarmKind final : public Kind {
 public:
  explicit AlarmKind(World& world) : alarms_(*world.database, world.clock, world.random, {}) {
    alarms_.load();
  }
  WorkPart& part() override { return alarms_; }
  void add() override { ASSERT_TRUE(alarms_.set({"ring", "[]", 1})); }
  bool begin() override { return alarms_.begin_next().has_value(); }
  std::vector<GivenUp> given_up() override { return alarms_.take_given_up(); }

 private:
  Alarms alarms_;
};

class TellingKind final : public Kind {
 public:
  explicit TellingKind(World& world) : fibers_(*world.database, world.clock, world.random, {}) {
    fibers_.load();
  }
  WorkPart& part() override { return fibers_.ends().tellings(); }
  void add() override {
    const auto fiber = fibers_.start({.name = "work"}).value();
    ASSERT_TRUE(fibers_.settle(fiber.fiber, FiberStatus::kCompleted, "1"));
  }
  bool begin() override { return fibers_.ends().next_untold().has_value(); }
  std::vector<GivenUp> given_up() override { return fibers_.ends().tellings().take_given_up(); }

 private:
  Fibers fibers_;
};

struct KindRow {
  const char* name;
  std::function<std::unique_ptr<Kind>(World&)> open;
};

class CountedJobsTest : public ::testing::TestWithParam<KindRow> {
 protected:
  CountedJobsTest() {
    open();
    kind_->add();
    world_.database->commit();
  }
  void open() {
    kind_.reset();
    world_.database.reset();
    world_.database = std::make_unique<storage::AgentDatabase>(world_.directory.path() / "a.db",
                                                               storage::AgentKey{"Worker", "a"});
    kind_ = GetParam().open(world_);
  }
  bool begin() {
    const bool begun = kind_->begin();
    world_.database->commit();
    return begun;
  }
  void go_on_purpose() {
    kind_->part().interrupt_on_purpose();
    world_.database->commit();
    kind_->part().close();
    open();
  }

  World world_;
  std::unique_ptr<Kind> kind_;
};

TEST_P(CountedJobsTest, AKillIsFollowedByAnotherTryAtOnce) {
  EXPECT_TRUE(kind_->part().wake().working);
  EXPECT_TRUE(begin());
  EXPECT_FALSE(begin());
  open();
  EXPECT_TRUE(kind_->part().due());
  EXPECT_TRUE(begin());
}

TEST_P(CountedJobsTest, FurtherKillsInARowAreFollowedByWaitsAndTooManyEndItOnce) {
  for (int kills = 0; kills < kMostInterruptions; ++kills) {
    ASSERT_TRUE(begin()) << kills;
    open();
    EXPECT_EQ(kind_->part().due(), kills == 0 || kills + 1 == kMostInterruptions);
    world_.clock.advance(kills < 9 ? milliseconds(1'250) : milliseconds(400'000));
    EXPECT_TRUE(kind_->part().due());
  }
  EXPECT_FALSE(begin());
  EXPECT_EQ(kind_->given_up().size(), 1U);
  EXPECT_TRUE(kind_->given_up().empty());
  EXPECT_TRUE(kind_->part().wake().none());
  open();
  EXPECT_TRUE(kind_->part().wake().none()) << "it stays so";
}

TEST_P(CountedJobsTest, AnEndOnPurposeCountsForNothing) {
  for (int i = 0; i < kMostInterruptions + 5; ++i) {
    ASSERT_TRUE(begin()) << i;
    go_on_purpose();
  }
  EXPECT_TRUE(begin());
  EXPECT_TRUE(kind_->given_up().empty());
}

TEST_P(CountedJobsTest, AClosedPartSaysWhenItWakes) {
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(begin());
    open();
  }
  const Wake before = kind_->part().wake();
  kind_->part().close();
  EXPECT_EQ(kind_->part().wake(), before);
}

template <class Type>
KindRow kind(const char* name) {
  return {name, [](World& world) { return std::make_unique<Type>(world); }};
}

INSTANTIATE_TEST_SUITE_P(Kinds, CountedJobsTest,
                         ::testing::Values(kind<QueueKind>("Queue"), kind<NoticeKind>("Notices"),
                                           kind<AlarmKind>("Alarms"), kind<TellingKind>("Telling")),
                         [](const auto& of) { return std::string(of.param.name); });

// ---- a clock that is set back by an hour --------------------------------------------------------

class CountedJobsClockTest : public ::testing::Test {
 protected:
  [[nodiscard]] std::int64_t now() const { return unix_millis(world_.clock.wall_now()); }
  void set_back() { world_.clock.set_wall(world_.clock.wall_now() - hours(1)); }
  template <class Part, class... More>
  Part& open(std::optional<Part>& part, const More&... more) {
    queue_.reset();
    alarms_.reset();
    notices_.reset();
    open_world();
    part.emplace(*world_.database, world_.clock, world_.random, more...);
    part->load();
    return *part;
  }
  World& open_world() {
    world_.database.reset();
    world_.database = std::make_unique<storage::AgentDatabase>(world_.directory.path() / "a.db",
                                                               storage::AgentKey{"Worker", "a"});
    return world_;
  }
  Queue& open_queue() { return open(queue_, QueueSettings{}); }
  Alarms& open_alarms() { return open(alarms_, AlarmSettings{}); }
  bool begin(Queue& queue) {
    const auto item = queue.begin_next();
    if (item) id_ = item->id;
    return item.has_value();
  }
  TryEnd end(Queue& queue, TryOutcome how) { return queue.ended(id_, how, "failed").next; }

  World world_;
  std::optional<Queue> queue_;
  std::optional<Alarms> alarms_;
  std::optional<Notices> notices_;
  std::string id_;  // of the item that began last
};

TEST_F(CountedJobsClockTest, AnAlarmThatIsSetAfterwardsRingsAtItsTime) {
  Alarms& alarms = open_alarms();
  set_back();
  ASSERT_TRUE(alarms.set({"ring", "[]", now() + 600'000}));
  EXPECT_EQ(alarms.wake().at_ms, now() + 600'000);
  EXPECT_FALSE(alarms.begin_next());
}

TEST_F(CountedJobsClockTest, AnAlarmThatWaitsRingsAtItsTimeOfTheWall) {
  Alarms& alarms = open_alarms();
  const std::int64_t at = now() + 600'000;
  ASSERT_TRUE(alarms.set({"ring", "[]", at}));
  set_back();
  world_.clock.advance(milliseconds(600'000));
  EXPECT_FALSE(alarms.begin_next()) << "it is an hour earlier by the wall";
  EXPECT_EQ(alarms.wake().at_ms, at);
  world_.clock.advance(hours(1));
  EXPECT_TRUE(alarms.begin_next());
}

TEST_F(CountedJobsClockTest, AWaitBeforeARetryKeepsItsLength) {
  Alarms& alarms = open_alarms();
  ASSERT_TRUE(alarms.set({"ring", "[]", now()}));
  const auto alarm = alarms.begin_next().value();
  set_back();
  EXPECT_EQ(alarms.ended(alarm.id, TryOutcome::kFailed, "failed").next, TryEnd::kRetry);
  EXPECT_FALSE(alarms.begin_next()) << "it waits a second";
  set_back();
  world_.clock.advance(milliseconds(1'000));
  EXPECT_TRUE(alarms.begin_next());

  Queue& queue = open_queue();
  ASSERT_TRUE(queue.push({.callback = "c", .retry_base_ms = 60'000, .retry_max_ms = 60'000}));
  ASSERT_TRUE(begin(queue));
  set_back();
  EXPECT_EQ(end(queue, TryOutcome::kFailed), TryEnd::kRetry);
  EXPECT_FALSE(begin(queue));
}

TEST_F(CountedJobsClockTest, WhatStandsBehindTheFirstOfALaneDoesNotWaitForTheJump) {
  Queue& queue = open_queue();
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(queue.push({.callback = "c"}));
  ASSERT_TRUE(begin(queue));
  set_back();
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(end(queue, TryOutcome::kDone), TryEnd::kDone);
    EXPECT_TRUE(queue.wake().working);
    EXPECT_TRUE(begin(queue));
  }
  Notices& notices = open(notices_);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(notices.push({"Room", "a", "note", "[]", ""}));
  set_back();
  for (int i = 0; i < 3; ++i) {
    const auto notice = notices.begin_next();
    ASSERT_TRUE(notice) << i;
    EXPECT_EQ(notices.ended(notice->id, TryOutcome::kDone).next, TryEnd::kDone);
  }
}

TEST_F(CountedJobsClockTest, AnInstanceThatStartsAfterwardsWaitsForNoLaneEither) {
  Queue* queue = &open_queue();
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(queue->push({.callback = "c"}));
  world_.database->commit();
  set_back();
  queue = &open_queue();
  ASSERT_TRUE(begin(*queue));
  EXPECT_EQ(end(*queue, TryOutcome::kDone), TryEnd::kDone);
  EXPECT_TRUE(begin(*queue));
}

TEST_F(CountedJobsClockTest, AnItemThatWasInterruptedOnPurposeIsDueAtOnce) {
  Queue& queue = open_queue();
  ASSERT_TRUE(queue.push({.callback = "c"}));
  ASSERT_TRUE(begin(queue));
  set_back();
  EXPECT_FALSE(begin(queue));
  queue.interrupt_on_purpose();
  EXPECT_TRUE(queue.wake().working);
}

TEST_F(CountedJobsClockTest, ARetryThatWasInterruptedOnPurposeIsDueAtOnce) {
  Queue& queue = open_queue();
  ASSERT_TRUE(queue.push({.callback = "c"}));
  ASSERT_TRUE(begin(queue));
  EXPECT_EQ(end(queue, TryOutcome::kFailed), TryEnd::kRetry);
  world_.clock.advance(hours(1));
  ASSERT_TRUE(begin(queue));
  set_back();
  set_back();
  queue.interrupt_on_purpose();
  EXPECT_TRUE(queue.wake().working);
}

TEST_F(CountedJobsClockTest, AnAlarmsRetryWaitsNoLongerIfTheAgentWasColdMeanwhile) {
  Alarms* alarms = &open_alarms();
  ASSERT_TRUE(alarms->set({"ring", "[]", now()}));
  ASSERT_TRUE(alarms->set({"later", "[]", now() + 7'200'000}));
  const auto alarm = alarms->begin_next().value();
  EXPECT_EQ(alarms->ended(alarm.id, TryOutcome::kFailed, "failed").next, TryEnd::kRetry);
  world_.database->commit();
  set_back();
  alarms = &open_alarms();
  EXPECT_EQ(alarms->wake().at_ms, now() + 1'000);
  world_.clock.advance(milliseconds(1'000));
  EXPECT_TRUE(alarms->begin_next());
  EXPECT_FALSE(alarms->begin_next()) << "the other one keeps its time";
}

TEST_F(CountedJobsClockTest, ANotificationsRetryWaitsNoLongerIfTheAgentWasColdMeanwhile) {
  Notices* notices = &open(notices_);
  ASSERT_TRUE(notices->push({"Room", "a", "note", "[]", ""}));
  const auto notice = notices->begin_next().value();
  EXPECT_EQ(notices->ended(notice.id, TryOutcome::kFailed, "failed").next, TryEnd::kRetry);
  world_.database->commit();
  const std::int64_t wait = *notices->wake().at_ms - now();
  world_.clock.set_wall(world_.clock.wall_now() - hours(48));
  EXPECT_EQ(open(notices_).wake().at_ms, now() + wait);
}

TEST_F(CountedJobsClockTest, ATellingWaitsNoLongerThanTellingsDo) {
  {
    TellingKind kind(open_world());
    kind.add();
    world_.database->commit();
  }
  world_.clock.set_wall(world_.clock.wall_now() - hours(48));
  TellingKind kind(open_world());
  EXPECT_TRUE(kind.part().wake().working);
}

TEST_F(CountedJobsClockTest, AnAgentWithoutAlarmsWritesNothing) {
  Alarms& alarms = open_alarms();
  EXPECT_EQ(alarms.list(), "[]");
  set_back();
  EXPECT_FALSE(alarms.begin_next());
  EXPECT_FALSE(world_.database->exists());
  EXPECT_FALSE(world_.database->dirty());
}

// ---- a job that is removed while it runs, and a crash -------------------------------------------

TEST_F(CountedJobsClockTest, ACrashWhileARemovedJobRunsFreesItsLane) {
  Queue* queue = &open_queue();
  const auto item = queue->push({.callback = "a"});
  ASSERT_TRUE(queue->push({.callback = "b"}));
  ASSERT_TRUE(begin(*queue));
  ASSERT_TRUE(queue->remove(item->id));
  EXPECT_FALSE(begin(*queue));
  world_.database->commit();
  queue = &open_queue();
  EXPECT_TRUE(queue->wake().working);
  ASSERT_TRUE(queue->push({.callback = "c"}));
  EXPECT_EQ(queue->begin_next()->name, "b");

  Notices* notices = &open(notices_);
  const auto notice = notices->push({"Room", "a", "1", "[]", ""});
  ASSERT_TRUE(notices->push({"Room", "a", "2", "[]", ""}));
  ASSERT_TRUE(notices->begin_next());
  ASSERT_TRUE(notices->remove(*notice));
  EXPECT_FALSE(notices->begin_next());
  world_.database->commit();
  notices = &open(notices_);
  EXPECT_TRUE(notices->wake().working);
  EXPECT_EQ(notices->begin_next()->name, "2");
}

// ---- storage that fails -------------------------------------------------------------------------

TEST_F(CountedJobsClockTest, AReadThatFailsAtTheEndLosesNoWake) {
  Alarms& alarms = open_alarms();
  ASSERT_TRUE(alarms.set({"ring", "[]", now() + 24 * 3'600'000}));
  world_.database->commit();
  sqlite3* const connection = &world_.database->connection();
  sqlite3_progress_handler(connection, 1, [](void* /*data*/) { return 1; }, nullptr);
  alarms.interrupt_on_purpose();
  alarms.close();
  sqlite3_progress_handler(connection, 0, nullptr, nullptr);
  EXPECT_FALSE(alarms.wake().none());
}

TEST_F(CountedJobsClockTest, ATransactionThatWasLostDoesNotThrowOutOfALook) {
  Queue& queue = open_queue();
  ASSERT_TRUE(queue.push({.callback = "c"}));
  sqlite3_exec(&world_.database->connection(), "ROLLBACK", nullptr, nullptr, nullptr);
  EXPECT_TRUE(world_.database->transaction_was_lost());
  EXPECT_NO_THROW((void)queue.wake());
  EXPECT_NO_THROW(queue.close());
}

TEST_F(CountedJobsClockTest, AReadThatFailedOnceBeginsNothingEarlyAndHidesNothing) {
  Alarms& alarms = open_alarms();
  ASSERT_TRUE(alarms.set({"ring", "[]", now() + 24 * 3'600'000}));
  world_.database->commit();
  const auto fail_a_look = [&](const WorkPart& part) {
    sqlite3* const connection = &world_.database->connection();
    sqlite3_progress_handler(connection, 1, [](void* /*data*/) { return 1; }, nullptr);
    EXPECT_TRUE(part.wake().working) << "a row may be due";
    sqlite3_progress_handler(connection, 0, nullptr, nullptr);
  };
  fail_a_look(alarms);
  EXPECT_FALSE(alarms.begin_next()) << "it rings tomorrow";
  Queue& queue = open_queue();
  fail_a_look(queue);
  ASSERT_TRUE(queue.push({.callback = "a"}));
  EXPECT_TRUE(begin(queue));
}

}  // namespace
}  // namespace hearth::durable
