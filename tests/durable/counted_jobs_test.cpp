// Every kind of jobs on the shared policy, by one table: what a kill of the server, an end on
// purpose and too many kills do to a job. (A crash in a job: extensions/work_scenarios_test.cpp.)
#include "durable/counted_jobs.hpp"

#include "durable/alarms.hpp"
#include "durable/database_fixture.hpp"
#include "durable/fibers.hpp"
#include "durable/notices.hpp"
#include "durable/queue.hpp"

#include <sqlite3.h>

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace hearth::durable {
namespace {

using namespace std::chrono_literals;

// One kind with one job that is due.
class Kind {
 public:
  virtual ~Kind() = default;
  virtual CountedJobs& part() = 0;
  virtual void add() = 0;
  virtual bool begin() = 0;  // false: nothing begins
};

void add_to(Queue& queue) {
  ASSERT_TRUE(queue.push({.callback = "a"}));
}
void add_to(Notices& notices) {
  ASSERT_TRUE(notices.push({"Room", "a", "note", "[]", ""}));
}
void add_to(Alarms& alarms) {
  ASSERT_TRUE(alarms.set({"ring", "[]", 1}));
}

template <class Part>
class KindOf final : public Kind {
 public:
  template <class... Settings>
  KindOf(storage::AgentDatabase& database, const Clock& clock, Random& random,
         const Settings&... settings)
      : part_(database, clock, random, settings...) {
    part_.load();
  }
  CountedJobs& part() override { return part_; }
  void add() override { add_to(part_); }
  bool begin() override { return part_.begin_next().has_value(); }

 private:
  Part part_;
};

class TellingKind final : public Kind {
 public:
  TellingKind(storage::AgentDatabase& database, const Clock& clock, Random& random)
      : fibers_(database, clock, random, {}) {
    fibers_.load();
  }
  CountedJobs& part() override { return fibers_.ends().tellings(); }
  void add() override {
    const auto fiber = fibers_.start({.name = "work"}).value();
    ASSERT_TRUE(fibers_.settle(fiber.fiber, FiberStatus::kCompleted, "1"));
  }
  bool begin() override { return fibers_.ends().next_untold().has_value(); }

 private:
  Fibers fibers_;
};

struct KindRow {
  const char* name;
  std::function<std::unique_ptr<Kind>(storage::AgentDatabase&, const Clock&, Random&)> open;
};

class CountedJobsTest : public DatabaseFixture, public ::testing::WithParamInterface<KindRow> {
 protected:
  CountedJobsTest() {
    open();
    kind_->add();
    database_->commit();
  }
  void open() {
    kind_.reset();
    open_database();
    kind_ = GetParam().open(*database_, clock_, random_);
  }
  bool begin() {
    const bool begun = kind_->begin();
    database_->commit();
    return begun;
  }
  void go_on_purpose() {
    kind_->part().interrupt_on_purpose();
    database_->commit();
    kind_->part().close();
    open();
  }

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
    clock_.advance(kills < 9 ? 1'250ms : 400'000ms);
    EXPECT_TRUE(kind_->part().due());
  }
  EXPECT_FALSE(begin());
  EXPECT_EQ(kind_->part().take_given_up().size(), 1U);
  EXPECT_TRUE(kind_->part().take_given_up().empty());
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
  EXPECT_TRUE(kind_->part().take_given_up().empty());
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

template <class Type, class... Settings>
KindRow kind(const char* name, const Settings&... settings) {
  return {name, [=](storage::AgentDatabase& database, const Clock& clock, Random& random) {
            return std::make_unique<Type>(database, clock, random, settings...);
          }};
}

INSTANTIATE_TEST_SUITE_P(Kinds, CountedJobsTest,
                         ::testing::Values(kind<KindOf<Queue>>("Queue", QueueSettings{}),
                                           kind<KindOf<Notices>>("Notices"),
                                           kind<KindOf<Alarms>>("Alarms", AlarmSettings{}),
                                           kind<TellingKind>("Telling")),
                         [](const auto& of) { return std::string(of.param.name); });

// ---- a clock that is set back by an hour --------------------------------------------------------

class CountedJobsClockTest : public DatabaseFixture {
 protected:
  void set_back() { clock_.set_wall(clock_.wall_now() - 1h); }
  template <class Part, class... More>
  Part& open(std::optional<Part>& part, const More&... more) {
    queue_.reset();
    alarms_.reset();
    notices_.reset();
    open_database();
    part.emplace(*database_, clock_, random_, more...);
    part->load();
    return *part;
  }
  Queue& open_queue() { return open(queue_, QueueSettings{}); }
  Alarms& open_alarms() { return open(alarms_, AlarmSettings{}); }
  bool begin(Queue& queue) {
    const auto item = queue.begin_next();
    if (item) id_ = item->id;
    return item.has_value();
  }
  TryEnd end(Queue& queue, TryOutcome how) { return queue.ended(id_, how, "failed").next; }

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
  clock_.advance(600'000ms);
  EXPECT_FALSE(alarms.begin_next()) << "it is an hour earlier by the wall";
  EXPECT_EQ(alarms.wake().at_ms, at);
  clock_.advance(1h);
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
  clock_.advance(1'000ms);
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
  database_->commit();
  set_back();
  queue = &open_queue();
  ASSERT_TRUE(begin(*queue));
  EXPECT_EQ(end(*queue, TryOutcome::kDone), TryEnd::kDone);
  EXPECT_TRUE(begin(*queue));
}

TEST_F(CountedJobsClockTest, WhatWasInterruptedOnPurposeIsDueAtOnceAlsoARetry) {
  for (const bool is_retry : {false, true}) {
    Queue& queue = open_queue();
    ASSERT_TRUE(queue.push({.callback = "c"}));
    ASSERT_TRUE(begin(queue));
    if (is_retry) {
      EXPECT_EQ(end(queue, TryOutcome::kFailed), TryEnd::kRetry);
      clock_.advance(1h);
      ASSERT_TRUE(begin(queue));
      set_back();
    }
    set_back();
    EXPECT_FALSE(begin(queue));
    queue.interrupt_on_purpose();
    EXPECT_TRUE(queue.wake().working) << is_retry;
  }
}

TEST_F(CountedJobsClockTest, AnAlarmsRetryWaitsNoLongerIfTheAgentWasColdMeanwhile) {
  Alarms* alarms = &open_alarms();
  ASSERT_TRUE(alarms->set({"ring", "[]", now()}));
  ASSERT_TRUE(alarms->set({"later", "[]", now() + 7'200'000}));
  const auto alarm = alarms->begin_next().value();
  EXPECT_EQ(alarms->ended(alarm.id, TryOutcome::kFailed, "failed").next, TryEnd::kRetry);
  database_->commit();
  set_back();
  alarms = &open_alarms();
  EXPECT_EQ(alarms->wake().at_ms, now() + 1'000);
  clock_.advance(1'000ms);
  EXPECT_TRUE(alarms->begin_next());
  EXPECT_FALSE(alarms->begin_next()) << "the other one keeps its time";
}

TEST_F(CountedJobsClockTest, ANotificationsRetryWaitsNoLongerIfTheAgentWasColdMeanwhile) {
  Notices* notices = &open(notices_);
  ASSERT_TRUE(notices->push({"Room", "a", "note", "[]", ""}));
  const auto notice = notices->begin_next().value();
  EXPECT_EQ(notices->ended(notice.id, TryOutcome::kFailed, "failed").next, TryEnd::kRetry);
  database_->commit();
  const std::int64_t wait = *notices->wake().at_ms - now();
  clock_.set_wall(clock_.wall_now() - 48h);
  EXPECT_EQ(open(notices_).wake().at_ms, now() + wait);
}

TEST_F(CountedJobsClockTest, ATellingWaitsNoLongerThanTellingsDo) {
  open_database();
  {
    TellingKind kind(*database_, clock_, random_);
    kind.add();
    database_->commit();
  }
  clock_.set_wall(clock_.wall_now() - 48h);
  open_database();
  TellingKind kind(*database_, clock_, random_);
  EXPECT_TRUE(kind.part().wake().working);
}

TEST_F(CountedJobsClockTest, AnAgentWithoutAlarmsWritesNothing) {
  Alarms& alarms = open_alarms();
  EXPECT_EQ(alarms.list(), "[]");
  set_back();
  EXPECT_FALSE(alarms.begin_next());
  EXPECT_FALSE(database_->exists());
  EXPECT_FALSE(database_->dirty());
}

// ---- a job that is removed while it runs, and a crash -------------------------------------------

TEST_F(CountedJobsClockTest, ACrashWhileARemovedJobRunsFreesItsLane) {
  Queue* queue = &open_queue();
  const auto item = queue->push({.callback = "a"});
  ASSERT_TRUE(queue->push({.callback = "b"}));
  ASSERT_TRUE(begin(*queue));
  ASSERT_TRUE(queue->remove(item->id));
  EXPECT_FALSE(begin(*queue));
  database_->commit();
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
  database_->commit();
  notices = &open(notices_);
  EXPECT_TRUE(notices->wake().working);
  EXPECT_EQ(notices->begin_next()->name, "2");
}

// ---- storage that fails -------------------------------------------------------------------------

TEST_F(CountedJobsClockTest, AReadThatFailsAtTheEndLosesNoWake) {
  Alarms& alarms = open_alarms();
  ASSERT_TRUE(alarms.set({"ring", "[]", now() + 24 * 3'600'000}));
  database_->commit();
  sqlite3* const connection = &database_->connection();
  sqlite3_progress_handler(connection, 1, [](void* /*data*/) { return 1; }, nullptr);
  alarms.interrupt_on_purpose();
  alarms.close();
  sqlite3_progress_handler(connection, 0, nullptr, nullptr);
  EXPECT_FALSE(alarms.wake().none());
}

TEST_F(CountedJobsClockTest, ATransactionThatWasLostDoesNotThrowOutOfALook) {
  Queue& queue = open_queue();
  ASSERT_TRUE(queue.push({.callback = "c"}));
  sqlite3_exec(&database_->connection(), "ROLLBACK", nullptr, nullptr, nullptr);
  EXPECT_TRUE(database_->transaction_was_lost());
  EXPECT_NO_THROW((void)queue.wake());
  EXPECT_NO_THROW(queue.close());
}

TEST_F(CountedJobsClockTest, AReadThatFailedOnceBeginsNothingEarlyAndHidesNothing) {
  Alarms& alarms = open_alarms();
  ASSERT_TRUE(alarms.set({"ring", "[]", now() + 24 * 3'600'000}));
  database_->commit();
  const auto fail_a_look = [&](const WorkPart& part) {
    sqlite3* const connection = &database_->connection();
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
