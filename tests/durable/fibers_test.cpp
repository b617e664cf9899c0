// The rows of fibers through every state, with restarts in between.
//
// The behaviours that users of such platforms rely on, by number in the list of acceptance
// behaviours (section 4.2), and the test of each.
//
//   14      P1_AStartedFiberIsARowAndIsOfferedAfterACrash
//   15      TheLastCheckpointIsOfferedWhole
//   16, 19  ARecoveredFiberIsGoneAndIsNotOfferedAgain
//   17      P1_AStartedFiberIsARowAndIsOfferedAfterACrash
//   18      P5_InterruptedFibersAreOfferedOldestFirst
//   20      R7_AFailedRecoveryWaitsLongerEachTimeAndTheWaitSurvivesARestart
//   21      ours: a limit of attempts, not of age: AfterMaxAttemptsAFiberIsDeadUntilItIsRetried
//   22      nothing external is restored before hooks; they run after the agent has started
//   23, 24  R7_AFailedRecoveryWaitsLongerEachTimeAndTheWaitSurvivesARestart
//   25      ours: each fiber has its own wait, and its own progress: R7_ProgressForgetsTheAttempts
//   26      ARecoveredFiberIsGoneAndIsNotOfferedAgain
//   27      every crash() here
//   G1      P2_FinishedWorkIsNotOfferedAndUncommittedFinishIs
//   G3      P4_AnAttemptCountsAlsoIfTheHookTakesTheProcessWithIt
//   G5      P3_AContinuationTakesItsPredecessorsPlaceInOneTransaction
#include "durable/fibers.hpp"

#include "json/json.hpp"
#include "storage/statement.hpp"
#include "support/counted_steps.hpp"
#include "support/manual_clock.hpp"
#include "support/seeded_random.hpp"
#include "support/temp_directory.hpp"

#include <sqlite3.h>

#include <gtest/gtest.h>

#include <memory>
#include <optional>

namespace hearth::durable {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class FibersTest : public ::testing::Test {
 protected:
  FibersTest() { open(); }

  // As after a kill of the process: only committed data is left.
  void crash() {
    fibers_.reset();
    database_.reset();
    open();
  }
  void open() {
    database_ = std::make_unique<storage::AgentDatabase>(directory_.path() / "a.db",
                                                         storage::AgentKey{"Worker", "a"});
    fibers_.emplace(*database_, clock_, random_, settings_);
    fibers_->load();
  }
  Fibers::Started start(std::string_view name, std::string_view replaces = "") {
    auto started = fibers_->start(name, replaces);
    EXPECT_TRUE(started.has_value());
    database_->commit();
    return *started;
  }
  Result<FiberHandle> start_managed(std::string_view name, std::string_view id) {
    if (const auto may = fibers_->may_start(name, id); may.has_error()) return may.error();
    Job job;
    job.id = id;
    job.name = name;
    job.created_at_ms = unix_millis(clock_.wall_now());
    return fibers_->start_managed(job);
  }
  std::optional<Interrupted> recover() {
    auto found = fibers_->begin_recovery();
    database_->commit();
    return found;
  }

  hearth::testing::TempDirectory directory_;
  hearth::testing::ManualClock clock_;
  hearth::testing::SeededRandom random_{42};
  FiberSettings settings_;
  std::unique_ptr<storage::AgentDatabase> database_;
  std::optional<Fibers> fibers_;
};

TEST_F(FibersTest, P1_AStartedFiberIsARowAndIsOfferedAfterACrash) {
  const auto started = start("research");
  EXPECT_EQ(started.id.size(), 36U);
  EXPECT_FALSE(fibers_->due()) << "it runs here";
  EXPECT_TRUE(fibers_->wake().working);
  crash();
  ASSERT_TRUE(fibers_->due());
  const auto fiber = recover();
  ASSERT_TRUE(fiber);
  EXPECT_EQ(fiber->id, started.id);
  EXPECT_EQ(fiber->name, "research");
  EXPECT_EQ(fiber->snapshot, std::nullopt);
  EXPECT_EQ(fiber->attempt, 1);
  EXPECT_EQ(fiber->created_at_ms, unix_millis(clock_.wall_now()));
}

TEST_F(FibersTest, TheLastCheckpointIsOfferedWhole) {
  const auto started = start("research");
  ASSERT_TRUE(fibers_->stash(started.handle, R"({"step":1})"));
  ASSERT_TRUE(fibers_->stash(started.handle, R"({"step":2})"));
  database_->commit();
  crash();
  EXPECT_EQ(recover()->snapshot, R"({"step":2})");
}

TEST_F(FibersTest, ACheckpointRewritesItsDocumentAndNotTheRow) {
  const auto started = start("research");
  int rows = 0;
  sqlite3_update_hook(
      &database_->connection(),
      [](void* count, int, const char*, const char*, sqlite3_int64) {
        ++*static_cast<int*>(count);
      },
      &rows);
  ASSERT_TRUE(fibers_->stash(started.handle, "1"));
  ASSERT_TRUE(fibers_->stash(started.handle, "2"));
  database_->commit();
  EXPECT_EQ(rows, 0);
  ASSERT_TRUE(fibers_->finish(started.handle));
  EXPECT_EQ(rows, 1);
  sqlite3_update_hook(&database_->connection(), nullptr, nullptr);
}

TEST_F(FibersTest, P2_FinishedWorkIsNotOfferedAndUncommittedFinishIs) {
  const auto done = start("done");
  ASSERT_TRUE(fibers_->finish(done.handle));
  database_->commit();
  const auto half = start("half");
  ASSERT_TRUE(fibers_->finish(half.handle));
  crash();  // before the commit of the turn that finished it
  EXPECT_EQ(recover()->name, "half");
  EXPECT_FALSE(recover());
}

TEST_F(FibersTest, P3_AContinuationTakesItsPredecessorsPlaceInOneTransaction) {
  const auto first = start("research");
  ASSERT_TRUE(fibers_->stash(first.handle, "7"));
  database_->commit();
  crash();
  const auto fiber = recover();
  ASSERT_TRUE(fibers_->start("research", fiber->id));
  crash();  // before the commit: the old row is still the only one
  clock_.advance(seconds(10));
  const auto again = recover();
  ASSERT_TRUE(again);
  EXPECT_EQ(again->id, first.id);
  const auto next = start("research", again->id);
  fibers_->recovered(again->id);  // the hook ends well: nothing is left to remove
  database_->commit();
  crash();
  clock_.advance(seconds(10));
  const auto last = recover();
  ASSERT_TRUE(last);
  EXPECT_EQ(last->id, next.id);
  EXPECT_EQ(last->snapshot, "7") << "the checkpoint was taken over";
  EXPECT_FALSE(recover()) << "one row, not two";
}

TEST_F(FibersTest, P4_AnAttemptCountsAlsoIfTheHookTakesTheProcessWithIt) {
  start("poison");
  for (int attempt = 1; attempt <= 3; ++attempt) {
    crash();
    clock_.advance(seconds(400));
    EXPECT_EQ(recover()->attempt, attempt);
  }
}

TEST_F(FibersTest, R7_AFailedRecoveryWaitsLongerEachTimeAndTheWaitSurvivesARestart) {
  start("poison");
  crash();
  std::int64_t last_wait = 0;
  for (int failures = 1; failures <= 4; ++failures) {
    const auto fiber = recover();
    ASSERT_TRUE(fiber);
    EXPECT_EQ(fiber->attempt, failures) << "the count is on disk too";
    const auto failure = fibers_->failed(fiber->id, "no");
    database_->commit();
    crash();
    EXPECT_FALSE(fibers_->due()) << "the wait is on disk";
    EXPECT_EQ(fibers_->wake().at_ms, failure.next_at_ms);
    const std::int64_t wait = failure.next_at_ms - unix_millis(clock_.wall_now());
    EXPECT_GT(wait, last_wait * 3 / 2);
    last_wait = wait;
    clock_.advance(milliseconds(wait));
    EXPECT_TRUE(fibers_->due());
  }
}

TEST_F(FibersTest, AfterMaxAttemptsAFiberIsDeadUntilItIsRetried) {
  settings_.max_attempts = 3;
  start("poison");
  crash();
  std::string id;
  for (int attempt = 1; attempt <= 3; ++attempt) {
    clock_.advance(seconds(400));
    const auto fiber = recover();
    ASSERT_TRUE(fiber);
    id = fiber->id;
    EXPECT_EQ(fibers_->failed(id, "no").dead, attempt == 3);
    database_->commit();
  }
  crash();
  clock_.advance(std::chrono::hours(24));
  EXPECT_FALSE(fibers_->due());
  EXPECT_TRUE(fibers_->wake().none()) << "a dead fiber wakes nobody";
  EXPECT_EQ(fibers_->counts().dead, 1U);
  EXPECT_FALSE(fibers_->retry("unknown"));
  ASSERT_TRUE(fibers_->retry(id));
  database_->commit();
  EXPECT_EQ(recover()->attempt, 1);
}

TEST_F(FibersTest, AContinuationThatDiesWithoutProgressGoesOnCounting) {
  settings_.max_attempts = 3;
  start("crashes at once");
  for (int attempt = 1; attempt <= 3; ++attempt) {
    crash();
    clock_.advance(seconds(400));
    const auto fiber = recover();
    ASSERT_TRUE(fiber) << attempt;
    EXPECT_EQ(fiber->attempt, attempt);
    start("crashes at once", fiber->id);
  }
  crash();
  clock_.advance(seconds(400));
  EXPECT_EQ(fibers_->take_given_up(), std::vector<GivenUp>{});
  EXPECT_FALSE(recover());
  EXPECT_EQ(fibers_->counts().dead, 1U);
  const auto passed_over = fibers_->take_given_up();
  ASSERT_EQ(passed_over.size(), 1U);
  EXPECT_EQ(passed_over[0].why, "interrupted again and again without progress");
  EXPECT_FALSE(recover());
  EXPECT_EQ(fibers_->take_given_up(), std::vector<GivenUp>{}) << "it is told once";
}

TEST_F(FibersTest, InterruptionsOnPurposeDoNotCount) {
  settings_.max_attempts = 3;
  start("one long step");
  for (int restart = 0; restart < 20; ++restart) {
    fibers_->interrupt_on_purpose();
    database_->commit();
    crash();
    const auto fiber = recover();
    ASSERT_TRUE(fiber) << restart << ": at once, and alive";
    EXPECT_EQ(fiber->attempt, 1);
    start("one long step", fiber->id);
  }
}

TEST_F(FibersTest, AClockThatWasAheadPostponesNothingForLong) {
  const WallTime right = clock_.wall_now();
  start("poison");
  crash();
  clock_.set_wall(right + std::chrono::hours(24 * 365));
  const auto fiber = recover();
  ASSERT_TRUE(fiber);
  (void)fibers_->failed(fiber->id, "no");
  database_->commit();
  clock_.set_wall(right);
  crash();
  clock_.advance(seconds(375));
  EXPECT_TRUE(fibers_->due());
}

TEST_F(FibersTest, AWaitKeepsItsLengthWhenTheClockIsSetBackWhileItLasts) {
  start("poison");
  crash();
  const auto fiber = recover();
  ASSERT_TRUE(fiber);
  const auto failure = fibers_->failed(fiber->id, "no");
  const std::int64_t wait = failure.next_at_ms - unix_millis(clock_.wall_now());
  clock_.set_wall(clock_.wall_now() - std::chrono::hours(1));
  EXPECT_FALSE(fibers_->due());
  EXPECT_LE(*fibers_->wake().at_ms, unix_millis(clock_.wall_now()) + wait + 2'000);
  clock_.advance(milliseconds(wait));
  EXPECT_TRUE(fibers_->due());
}

TEST_F(FibersTest, AShutdownInTheMiddleOfAHookDoesNotCount) {
  start("slow hook");
  for (int restart = 0; restart < 20; ++restart) {
    crash();
    const auto fiber = recover();
    ASSERT_TRUE(fiber) << restart;
    EXPECT_EQ(fiber->attempt, 1);
    fibers_->interrupt_on_purpose();
    database_->commit();
  }
}

TEST_F(FibersTest, OnlyAFiberThatIsBeingRecoveredCanBeReplaced) {
  const auto first = start("work");
  crash();
  EXPECT_EQ(fibers_->start("work", first.id).error().code, Errc::kNotFound) << "not offered yet";
  ASSERT_TRUE(recover());
  (void)fibers_->failed(first.id, "no");
  EXPECT_EQ(fibers_->start("work", first.id).error().code, Errc::kNotFound) << "its hook has ended";
}

TEST_F(FibersTest, OnlyADeadFiberIsRetried) {
  const auto fiber = start("work");
  EXPECT_EQ(fibers_->retry(fiber.id).error().code, Errc::kNotFound) << "it runs";
  crash();
  EXPECT_EQ(fibers_->retry(fiber.id).error().code, Errc::kNotFound) << "it waits";
  ASSERT_TRUE(recover());
  EXPECT_EQ(fibers_->retry(fiber.id).error().code, Errc::kNotFound) << "it is being offered";
  EXPECT_FALSE(recover());
}

TEST_F(FibersTest, R7_ProgressForgetsTheAttempts) {
  start("slow but steady");
  for (int round = 0; round < 20; ++round) {
    crash();
    const auto fiber = recover();
    ASSERT_TRUE(fiber) << round;
    EXPECT_EQ(fiber->attempt, 1);
    const auto next = start("slow but steady", fiber->id);
    ASSERT_TRUE(fibers_->stash(next.handle, std::to_string(round)));
    database_->commit();
  }
}

TEST_F(FibersTest, TheSameCheckpointAgainIsNoProgress) {
  const auto first = start("stands still");
  ASSERT_TRUE(fibers_->stash(first.handle, R"({"step":1})"));
  database_->commit();
  int offered = 0;
  for (; offered < 100; ++offered) {
    crash();
    clock_.advance(std::chrono::hours(1));  // longer than any wait
    const auto fiber = recover();
    if (!fiber) break;
    EXPECT_EQ(fiber->attempt, offered + 1);
    const auto next = start("stands still", fiber->id);
    ASSERT_TRUE(fibers_->stash(next.handle, R"({"step":1})"));
    database_->commit();
  }
  EXPECT_EQ(offered, settings_.max_attempts);
}

TEST_F(FibersTest, P5_InterruptedFibersAreOfferedOldestFirst) {
  for (const char* name : {"a", "b", "c"}) {
    start(name);
    clock_.advance(milliseconds(5));
  }
  crash();
  std::string order;
  while (const auto fiber = recover()) {
    order += fiber->name;
    fibers_->recovered(fiber->id);
  }
  EXPECT_EQ(order, "abc");
}

TEST_F(FibersTest, ARecoveredFiberIsGoneAndIsNotOfferedAgain) {
  start("a");
  crash();
  fibers_->recovered(recover()->id);
  database_->commit();
  EXPECT_FALSE(recover());
  EXPECT_TRUE(fibers_->wake().none());
  crash();
  EXPECT_FALSE(recover());
  EXPECT_TRUE(fibers_->wake().none());
}

TEST_F(FibersTest, TheDueOnesAreListedWithoutBeingOffered) {
  const auto old = start("old");
  clock_.advance(milliseconds(5));
  start("young");
  clock_.advance(milliseconds(5));
  const auto waits = start("waits");
  crash();
  ASSERT_TRUE(recover());
  ASSERT_TRUE(recover());
  ASSERT_TRUE(recover());
  (void)fibers_->failed(waits.id, "no");
  (void)fibers_->failed(old.id, "no");
  database_->commit();
  EXPECT_TRUE(fibers_->due_list().empty()) << "one has a hook, the others wait";
  clock_.advance(seconds(2));
  const auto due = fibers_->due_list();
  ASSERT_EQ(due.size(), 2U);
  EXPECT_EQ(due[0].name, "old");
  EXPECT_EQ(due[0].attempt, 2);
  EXPECT_EQ(due[1].name, "waits");
  EXPECT_EQ(recover()->attempt, 2) << "listing counts for nothing";
}

TEST_F(FibersTest, P5_APlanSaysWhoComesFirstAndTheOthersFollowOldestFirst) {
  std::vector<std::string> ids;
  for (const char* name : {"a", "b", "c", "d"}) {
    ids.push_back(start(name).id);
    clock_.advance(milliseconds(5));
  }
  crash();
  const std::vector<std::string> order{ids[2], "unknown", ids[1], ids[2]};
  fibers_->plan(order);
  EXPECT_EQ(fibers_->due_list().front().name, "c");
  std::string offered;
  while (const auto fiber = recover()) offered += fiber->name;
  EXPECT_EQ(offered, "cbad");
}

TEST_F(FibersTest, P6_AFiberIsNotOfferedWhileAHookIsToDecideAboutIt) {
  const auto fiber = start_managed("work", "x");
  ASSERT_TRUE(fiber);
  database_->commit();
  crash();
  ASSERT_TRUE(recover());
  EXPECT_FALSE(fibers_->due());
  EXPECT_FALSE(recover());
  EXPECT_TRUE(fibers_->wake().working);
  ASSERT_TRUE(fibers_->resume("x"));
  fibers_->postpone("x", 0);
  EXPECT_TRUE(fibers_->due()) << "though the hook that went on with it may not have ended";
  EXPECT_EQ(recover()->attempt, 1);
}

TEST_F(FibersTest, AnErasedFiberHasNoHandleAndNoRow) {
  const auto fiber = start_managed("work", "x");
  EXPECT_EQ(start_managed("work", "x").error().code, Errc::kConflict);
  EXPECT_EQ(fibers_->find("x")->running, *fiber);
  EXPECT_EQ(*fibers_->managed_id(*fiber), "x");
  const auto other = start("plain");
  fibers_->erase("x");
  fibers_->erase(other.id);
  database_->commit();
  EXPECT_EQ(fibers_->stash(*fiber, "1").error().code, Errc::kNotFound);
  EXPECT_EQ(fibers_->managed_id(*fiber), nullptr);
  EXPECT_EQ(fibers_->find("x")->running, 0U)
      << "its row is a record, which says what becomes of it";
  EXPECT_EQ(fibers_->finish(other.handle).error().code, Errc::kNotFound);
  EXPECT_FALSE(fibers_->find(other.id));
  EXPECT_EQ(fibers_->managed_id(start("plain").handle), nullptr);
  crash();
  EXPECT_EQ(fibers_->counts().interrupted, 2U);
}

TEST_F(FibersTest, DeadFibersAreListedInPagesOldestFirst) {
  settings_.max_attempts = 1;
  std::vector<std::string> ids;
  for (const char* name : {"a", "b", "c"}) {
    const auto fiber = start(name);
    ids.push_back(fiber.id);
    ASSERT_TRUE(fibers_->stash(fiber.handle, R"({"s":1})"));
    clock_.advance(milliseconds(5));
  }
  start("alive");
  crash();
  EXPECT_EQ(*fibers_->list_dead("", 0), "[]");
  for (int i = 0; i < 3; ++i) (void)fibers_->failed(recover()->id, "no \"way\"");
  database_->commit();
  crash();
  const std::string page = *fibers_->list_dead("", 2);
  EXPECT_TRUE(
      page.starts_with(R"([{"id":")" + ids[0] + R"(","name":"a","snapshot":{"s":1},"created_at":)"))
      << page;
  EXPECT_TRUE(page.ends_with(R"("attempts":1,"last_error":"no \"way\""}])")) << page;
  EXPECT_NE(page.find(ids[1]), std::string::npos);
  EXPECT_EQ(page.find(ids[2]), std::string::npos);
  EXPECT_NE(fibers_->list_dead(ids[1], 2)->find(ids[2]), std::string::npos);
  EXPECT_EQ(*fibers_->list_dead(ids[2], 2), "[]");
  EXPECT_EQ(fibers_->list_dead("gone", 2).error().code, Errc::kNotFound);
  EXPECT_EQ(fibers_->list_dead("", 101).error().code, Errc::kInvalidArgument);
}

TEST_F(FibersTest, DeadFibersOfOneMomentAreEachListedOnce) {
  settings_.max_attempts = 1;
  for (const char* name : {"a", "b", "c"}) start(name);
  crash();
  for (int i = 0; i < 3; ++i) (void)fibers_->failed(recover()->id, "no");
  database_->commit();
  std::string names;
  std::string after;
  for (int pages = 0; pages < 3; ++pages) {
    const Json page = *parse_json(*fibers_->list_dead(after, 2));
    for (const Json& fiber : page) names += fiber.at("name").get<std::string>();
    if (!page.empty()) after = page.back().at("id").get<std::string>();
  }
  EXPECT_EQ(names, "abc");
}

// What an agent does at each wake and in each turn, in instructions of the database.
TEST_F(FibersTest, TensOfThousandsOfDeadFibersCostALiveOneNothing) {
  const std::string interrupted = start("interrupted").id;
  const auto effort = [&] {
    crash();
    const hearth::testing::CountedSteps steps(*database_);
    fibers_.emplace(*database_, clock_, random_, settings_);
    fibers_->load();
    const auto fiber = fibers_->start("work", "");
    EXPECT_TRUE(fibers_->stash(fiber->handle, "1"));
    EXPECT_TRUE(fibers_->wake().working);
    EXPECT_TRUE(fibers_->due());
    EXPECT_EQ(fibers_->due_list().size(), 1U);
    EXPECT_TRUE(fibers_->finish(fiber->handle));
    EXPECT_EQ(fibers_->next_due_id(), interrupted);
    return steps.count();
  };
  const auto alone = effort();
  database_->begin_write();
  storage::Statement(
      database_->connection(),
      "INSERT INTO cf_agents_jobs(kind, state, id, name, created_at, next_at, attempts, dead, "
      "ended_at, keep) "
      "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 30000) "
      "SELECT 1, 2, 'dead ' || i, 'x', i, 0, 10, 1, i, 'dead' FROM n")
      .execute();
  database_->commit();
  EXPECT_EQ(fibers_->counts().dead, 30'000U);
  EXPECT_LE(effort(), alone + 20) << "a jump more here and there";
  const hearth::testing::CountedSteps steps(*database_);
  EXPECT_NE(fibers_->list_dead("dead 15000", 1)->find("dead 15001"), std::string::npos);
  EXPECT_TRUE(fibers_->retry("dead 20000"));
  EXPECT_LT(steps.count(), 1'000U)
      << "a page, and one of them, are found without a look at the others";
}

TEST_F(FibersTest, WrongUsesAreRefused) {
  EXPECT_EQ(fibers_->start("", "").error().code, Errc::kInvalidArgument);
  EXPECT_EQ(fibers_->start(std::string(257, 'n'), "").error().code, Errc::kInvalidArgument);
  EXPECT_EQ(fibers_->start("\xff", "").error().code, Errc::kInvalidArgument);
  EXPECT_EQ(fibers_->start("x", "nothing to replace").error().code, Errc::kNotFound);
  const auto fiber = start("x");
  EXPECT_EQ(
      fibers_->stash(fiber.handle, std::string(settings_.max_snapshot_bytes + 1, '1')).error().code,
      Errc::kLimitExceeded);
  ASSERT_TRUE(fibers_->finish(fiber.handle));
  EXPECT_EQ(fibers_->finish(fiber.handle).error().code, Errc::kNotFound);
  EXPECT_EQ(fibers_->stash(fiber.handle, "1").error().code, Errc::kNotFound);
}

TEST_F(FibersTest, AnAgentWithoutFibersHasNoTableAndNeedsNoWake) {
  EXPECT_TRUE(fibers_->wake().none());
  EXPECT_FALSE(fibers_->due());
  EXPECT_FALSE(database_->exists());
}

TEST_F(FibersTest, TooManyAtOnceAreRefused) {
  for (std::size_t i = 0; i < settings_.max_running; ++i) ASSERT_TRUE(fibers_->start("x", ""));
  EXPECT_EQ(fibers_->start("x", "").error().code, Errc::kLimitExceeded);
}

}  // namespace
}  // namespace hearth::durable
