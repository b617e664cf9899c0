// Every kind of jobs on the shared policy, by one table: what a crash, an end on purpose and too
// many crashes do to a job, and how a page of its list ends.
#include "durable/counted_jobs.hpp"

#include "durable/alarms.hpp"
#include "durable/managed_fibers.hpp"
#include "durable/notices.hpp"
#include "durable/queue.hpp"
#include "support/manual_clock.hpp"
#include "support/seeded_random.hpp"
#include "support/temp_directory.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
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
  explicit TellingKind(World& world)
      : fibers_(*world.database, world.clock, world.random, {}),
        managed_(*world.database, fibers_, world.clock, world.random, {}) {
    fibers_.load();
    managed_.load();
  }
  WorkPart& part() override { return managed_; }
  void add() override {
    const auto fiber = managed_.start({.name = "work"});
    ASSERT_TRUE(fiber);
    ASSERT_TRUE(managed_.settle(fiber->fiber, FiberStatus::kCompleted, "1"));
  }
  bool begin() override { return managed_.next_untold().has_value(); }
  std::vector<GivenUp> given_up() override { return managed_.take_given_up(); }

 private:
  Fibers fibers_;
  ManagedFibers managed_;
};

struct KindRow {
  const char* name;
  int most;             // crashes, until the job is given up
  bool waits_for_more;  // a second crash in a row is followed by a wait
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

TEST_P(CountedJobsTest, ACrashIsFollowedByAnotherTryAtOnce) {
  EXPECT_TRUE(kind_->part().wake().working);
  EXPECT_TRUE(begin());
  EXPECT_FALSE(begin());
  open();
  EXPECT_TRUE(kind_->part().due());
  EXPECT_TRUE(begin());
}

TEST_P(CountedJobsTest, TheSecondCrashInARowIsFollowedByAWait) {
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(begin());
    open();
  }
  EXPECT_EQ(kind_->part().due(), !GetParam().waits_for_more);
  EXPECT_EQ(kind_->part().wake().at_ms.has_value(), GetParam().waits_for_more);
  world_.clock.advance(milliseconds(1'250));
  EXPECT_TRUE(kind_->part().due());
}

TEST_P(CountedJobsTest, TooManyCrashesEndItAndAreNamedOnce) {
  for (int i = 0; i < GetParam().most; ++i) {
    ASSERT_TRUE(begin()) << i;
    open();
    world_.clock.advance(hours(1));
  }
  EXPECT_FALSE(begin());
  EXPECT_EQ(kind_->given_up().size(), 1U);
  EXPECT_TRUE(kind_->given_up().empty());
  EXPECT_TRUE(kind_->part().wake().none());
  open();
  EXPECT_TRUE(kind_->part().wake().none()) << "it stays so";
}

TEST_P(CountedJobsTest, AnEndOnPurposeCountsForNothing) {
  for (int i = 0; i < GetParam().most + 5; ++i) {
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
KindRow kind(const char* name, int most, bool waits_for_more) {
  return {name, most, waits_for_more, [](World& world) { return std::make_unique<Type>(world); }};
}

INSTANTIATE_TEST_SUITE_P(Kinds, CountedJobsTest,
                         ::testing::Values(kind<QueueKind>("Queue", 10, true),
                                           kind<NoticeKind>("Notices", 10, true),
                                           kind<AlarmKind>("Alarms", 3, false),
                                           kind<TellingKind>("Telling", 10, true)),
                         [](const auto& of) { return std::string(of.param.name); });

}  // namespace
}  // namespace hearth::durable
