// How the records of fibers are listed, removed, kept, and told to the agent's code.
#include "durable/fibers_fixture.hpp"
#include "support/counted_steps.hpp"

#include <gtest/gtest.h>

namespace hearth::durable {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

class FibersRecordsTest : public FibersFixture {};

// ---- lists, removal, retention ------------------------------------------------------------------

TEST_F(FibersRecordsTest, RecordsAreListedAndRemoved) {
  const auto a = start("a");
  clock_.advance(1s);
  FiberRequest other = request("b");
  other.name = "other";
  const auto b = start(other);
  clock_.advance(1s);
  start("c");
  settle(a.fiber, FiberStatus::kCompleted);
  settle(b.fiber, FiberStatus::kError, "no");
  EXPECT_EQ(ids(listed({})), "c b a ") << "newest first";
  EXPECT_EQ(ids(listed({.statuses = 2})), "c ");
  EXPECT_EQ(ids(listed({.statuses = 16 | 32})), "b a ");
  EXPECT_EQ(ids(listed({.name = "report"})), "c a ");
  EXPECT_EQ(ids(listed({.statuses = 16, .name = "other"})), "");
  EXPECT_EQ(ids(listed({.before_ms = now()})), "b a ");
  EXPECT_EQ(ids(listed({.limit = 2})), "c b ");
  EXPECT_EQ(ids(listed({.after = "b", .limit = 2})), "a ");
  EXPECT_EQ(fibers_->records().list({.after = "gone"}).error().code, Errc::kNotFound);
  EXPECT_EQ(fibers_->records().list({.limit = 101}).error().code, Errc::kInvalidArgument);
  crash();
  EXPECT_EQ(ids(listed({.statuses = 2})), "");
  EXPECT_EQ(ids(listed({.statuses = 4})), "c ") << "what the disk says is stale";

  EXPECT_EQ(*fibers_->records().remove({.statuses = 2 | 4, .limit = 0}), 0U)
      << "never what is not settled";
  EXPECT_EQ(*fibers_->records().remove({.name = "other", .limit = 0}), 1U);
  EXPECT_EQ(*fibers_->records().remove({.limit = 0}), 1U);
  EXPECT_EQ(ids(listed({})), "c ");
  EXPECT_EQ(fibers_->records().remove({.limit = 501}).error().code, Errc::kInvalidArgument);
}

TEST_F(FibersRecordsTest, ThoseSettledLongestAgoAreRemovedFirst) {
  const auto a = start("a");
  const auto b = start("b");
  settle(b.fiber, FiberStatus::kCompleted);
  clock_.advance(1s);
  settle(a.fiber, FiberStatus::kCompleted);
  EXPECT_EQ(*fibers_->records().remove({.limit = 1}), 1U);
  EXPECT_EQ(ids(listed({})), "a ");
}

TEST_F(FibersRecordsTest, CleanUpSparesInterruptedAndDeadOnesUnlessTheyAreNamed) {
  settings_.max_attempts = 1;
  start("dead");
  start_interrupted(request("interrupted"));
  ASSERT_TRUE(recover());
  hook_fails("dead", "no");
  ASSERT_TRUE(fibers_->recovery().recovered("interrupted", ""));
  settle(start("error").fiber, FiberStatus::kError, "no");
  EXPECT_EQ(*fibers_->records().remove({.limit = 0}), 1U);
  EXPECT_EQ(status("error"), "none");
  EXPECT_EQ(ids(listed({.dead = true})), "dead ");
  EXPECT_EQ(*fibers_->records().remove({.limit = 0, .dead = true}), 1U);
  EXPECT_EQ(*fibers_->records().remove({.statuses = 8, .limit = 0}), 1U);
  EXPECT_EQ(ids(listed({})), "");
}

TEST_F(FibersRecordsTest, RetentionRemovesAFewAtATimeWhatHasHadItsTime) {
  settings_.max_attempts = 1;
  start_interrupted(request("dead"));
  hook_fails("dead", "no");
  for (int i = 0; i < 150; ++i) settle(start("").fiber, FiberStatus::kCompleted);
  settle(start("failed").fiber, FiberStatus::kError, "no");
  clock_.advance(settings_.keep_completed);
  EXPECT_FALSE(fibers_->ends().sweep()) << "P3: their tellings have not ended";
  while (const auto change = fibers_->ends().next_untold()) told(change->id, true);
  EXPECT_TRUE(fibers_->ends().sweep());
  EXPECT_EQ(count("SELECT count(*) FROM cf_agents_fibers"), 52) << "a hundred at a time";
  EXPECT_TRUE(fibers_->ends().sweep());
  EXPECT_FALSE(fibers_->ends().sweep());
  EXPECT_EQ(ids(listed({})), "failed dead ");
  database_->commit();
  EXPECT_FALSE(fibers_->ends().sweep());
  EXPECT_FALSE(database_->dirty()) << "looking writes nothing";
  clock_.advance(settings_.keep_failed);
  EXPECT_TRUE(fibers_->ends().sweep());
  EXPECT_EQ(ids(listed({})), "dead ");
}

TEST_F(FibersRecordsTest, WhatWasInterruptedIsKeptUntilSomebodyDecides) {
  start_interrupted(request("x"));
  ASSERT_TRUE(fibers_->recovery().recovered("x", ""));
  ASSERT_TRUE(fibers_->ends().next_untold());
  told("x", true);
  clock_.advance(settings_.keep_completed + settings_.keep_failed);
  EXPECT_FALSE(fibers_->ends().sweep());
  EXPECT_EQ(status("x"), "interrupted");
}

TEST_F(FibersRecordsTest, OpenRecordsAreListedWithoutALookAtTheSettledOnes) {
  start("a");
  sql("INSERT INTO cf_agents_jobs(kind, state, id, name, created_at, ended_at, status) "
      "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 10000) "
      "SELECT 2, 4, 's' || i, 'n', i, i, 'completed' FROM n");
  start("b");
  const hearth::testing::CountedSteps steps(*database_);
  EXPECT_EQ(ids(listed({.statuses = 1 | 2 | 4})), "b a ");
  EXPECT_LT(steps.count(), 1'000U);
}

TEST_F(FibersRecordsTest, APageEndsAtItsBoundOfBytesAndIsGoneOnWith) {
  const std::string large = "\"" + std::string(1'000'000, 'x') + "\"";
  for (int i = 0; i < 6; ++i) {
    start({.name = "report", .input = large});
  }
  std::size_t seen = 0;
  std::string after;
  int pages = 0;
  while (true) {
    const Json page = listed({.after = after});
    if (page.empty()) break;
    seen += page.size();
    after = page.back()["id"].get<std::string>();
    ++pages;
  }
  EXPECT_EQ(seen, 6U);
  EXPECT_EQ(pages, 2);
}

// ---- telling ------------------------------------------------------------------------------------

TEST_F(FibersRecordsTest, EverySettledRecordIsToldOnce) {
  EXPECT_FALSE(fibers_->ends().next_untold());
  const auto a = start("a");
  const auto b = start("b");
  settle(b.fiber, FiberStatus::kError, "no");
  clock_.advance(1ms);
  ASSERT_TRUE(fibers_->records().cancel("a", "", "stop"));
  (void)a;
  EXPECT_TRUE(fibers_->ends().tellings().wake().working);
  EXPECT_TRUE(fibers_->ends().tellings().due());
  const auto first = fibers_->ends().next_untold().value();
  EXPECT_EQ(first.id, "b") << "settled first";
  EXPECT_EQ(first.status, FiberStatus::kError);
  EXPECT_EQ(parse_json(first.record)->at("error"), "no");
  EXPECT_EQ(fibers_->ends().next_untold()->id, "a");
  EXPECT_FALSE(fibers_->ends().next_untold()) << "both are being told";
  EXPECT_FALSE(fibers_->ends().tellings().due());
  EXPECT_TRUE(fibers_->ends().tellings().wake().working);
  fibers_->ends().told("a", true);
  told("b", true);
  EXPECT_TRUE(fibers_->ends().tellings().wake().none());
  crash();
  EXPECT_FALSE(fibers_->ends().next_untold());
}

TEST_F(FibersRecordsTest, P3_WhatWasNotHeardIsToldAgainAfterGrowingWaits) {
  settle(start("a").fiber, FiberStatus::kCompleted);
  std::int64_t last_wait = 0;
  for (int failures = 1; failures <= 4; ++failures) {
    ASSERT_TRUE(fibers_->ends().next_untold());
    told("a", false);
    crash();
    EXPECT_FALSE(fibers_->ends().next_untold());
    const std::int64_t wait = *fibers_->ends().tellings().wake().at_ms - now();
    EXPECT_GT(wait, last_wait * 3 / 2);
    EXPECT_FALSE(fibers_->ends().tellings().wake().working);
    last_wait = wait;
    clock_.advance(milliseconds(wait));
  }
  fibers_->ends().told("a", true);  // no telling was in progress
  EXPECT_TRUE(fibers_->ends().next_untold());
}

TEST_F(FibersRecordsTest, WhatIsSettledAgainWhileItIsToldIsToldAgain) {
  start_interrupted(request("a"));
  ASSERT_TRUE(fibers_->recovery().recovered("a", ""));
  ASSERT_EQ(fibers_->ends().next_untold()->status, FiberStatus::kInterrupted);
  ASSERT_TRUE(fibers_->records().resolve("a", R"({"status":"aborted"})"));
  EXPECT_FALSE(fibers_->ends().next_untold()) << "one after the other";
  fibers_->ends().told("a", true);
  EXPECT_EQ(fibers_->ends().next_untold()->status, FiberStatus::kAborted);
}

TEST_F(FibersRecordsTest, WhatGoesOnWhileItIsToldIsRecoveredAfterACrash) {
  start_interrupted(request("a"));
  ASSERT_TRUE(fibers_->recovery().recovered("a", ""));
  ASSERT_EQ(fibers_->ends().next_untold()->status, FiberStatus::kInterrupted);
  ASSERT_TRUE(fibers_->records().retry("a"));
  ASSERT_TRUE(recover());
  ASSERT_TRUE(fibers_->resume("a"));
  fibers_->ends().told("a", true);  // that it was interrupted
  database_->commit();
  EXPECT_EQ(status("a"), "running");
  crash();
  clock_.advance(1h);
  ASSERT_TRUE(recover());
  settle(*fibers_->resume("a"), FiberStatus::kCompleted);
  const auto told = fibers_->ends().next_untold().value();
  EXPECT_EQ(told.status, FiberStatus::kCompleted);
}

TEST_F(FibersRecordsTest, WhatGoesWhileItIsToldIsForgotten) {
  settle(start("a").fiber, FiberStatus::kCompleted);
  ASSERT_TRUE(fibers_->ends().next_untold());
  ASSERT_EQ(*fibers_->records().remove({}), 1U);
  fibers_->ends().told("a", false);
  EXPECT_TRUE(fibers_->ends().tellings().wake().none());
}

// A waiter looks at its record before it has the record removed: hearth/ext/fibers.h.
TEST_F(FibersRecordsTest, WhatIsRemovedOrReplacedBeforeItWasToldIsKnownUntilThenAndToldNoMore) {
  settle(start("a").fiber, FiberStatus::kCompleted, R"({"sum":7})");
  settle(start("b").fiber, FiberStatus::kError, "broken");
  EXPECT_EQ(inspect("a")["result"]["sum"], 7);
  EXPECT_EQ(status("b"), "error");
  FiberFilter completed;
  completed.statuses = static_cast<std::uint32_t>(FiberStatus::kCompleted);
  ASSERT_EQ(*fibers_->records().remove(completed), 1U);
  const auto replaced = start({.policy = SettledKey::kReplace, .name = "report", .id = "b"});
  EXPECT_EQ(status("a"), "none");
  EXPECT_EQ(status("b"), "running");
  EXPECT_FALSE(fibers_->ends().next_untold());
  crash();
  EXPECT_FALSE(fibers_->ends().next_untold()) << "nor by the next instance";
}

TEST_F(FibersRecordsTest, AnAgentWithoutThemHasNoTableAndNoFile) {
  EXPECT_TRUE(fibers_->ends().tellings().wake().none());
  EXPECT_FALSE(fibers_->ends().next_untold());
  EXPECT_FALSE(fibers_->ends().sweep());
  EXPECT_EQ(*fibers_->records().list({}), "[]");
  EXPECT_EQ(*fibers_->records().remove({}), 0U);
  EXPECT_FALSE(database_->exists());
}

TEST_F(FibersRecordsTest, AfterCloseTheDatabaseCanBeClosedAndTheWakeIsStillKnown) {
  settle(start("a").fiber, FiberStatus::kCompleted);
  fibers_->ends().tellings().close();
  fibers_->close();
  database_->close();
  EXPECT_TRUE(fibers_->ends().tellings().wake().working);
}

}  // namespace
}  // namespace hearth::durable
