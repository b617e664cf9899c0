#include "durable/jobs.hpp"

#include "storage/statement.hpp"
#include "support/counted_steps.hpp"
#include "support/temp_directory.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <tuple>
#include <vector>

namespace hearth::durable {
namespace {

using std::chrono::milliseconds;
using storage::Param;

class JobsTest : public ::testing::Test {
 protected:
  Job insert(std::string id, JobKind kind = JobKind::kFiber, std::int64_t created_at_ms = 1) {
    Job job;
    job.kind = kind;
    job.id = std::move(id);
    job.name = "n";
    job.created_at_ms = created_at_ms;
    job.wait(job.created_at_ms);
    jobs_.insert(job);
    return job;
  }
  std::string seen(std::string_view where) {
    std::string ids;
    jobs_.each(where, {}, [&](const Job& job) {
      ids += job.id;
      return true;
    });
    return ids;
  }
  std::string first_due(JobKind kind) {
    const auto job = jobs_.first_due(kind, [](const Job&) { return true; });
    return job ? job->id : "";
  }

  hearth::testing::TempDirectory directory_;
  storage::AgentDatabase database_{directory_.path() / "a.db", {"Worker", "a"}};
  Jobs jobs_{database_};
};

TEST_F(JobsTest, P2_ReadingMakesNothing) {
  EXPECT_FALSE(jobs_.exists());
  EXPECT_FALSE(jobs_.find(1));
  EXPECT_FALSE(jobs_.find(JobKind::kFiber, "x"));
  EXPECT_EQ(first_due(JobKind::kItem), "");
  EXPECT_EQ(jobs_.count_bound(JobKind::kItem), 0U);
  EXPECT_FALSE(jobs_.document(1, JobPart::kInput));
  jobs_.release(JobKind::kFiber, 1);
  jobs_.shift(JobKind::kFiber, 1);
  EXPECT_FALSE(database_.exists());
}

// All but the moment that is in memory only.
auto columns(const Job& job) {
  return std::tuple(job.seq, job.kind, job.state, job.due_at_ms, job.id, job.name, job.key,
                    job.created_at_ms, job.started_at_ms, job.ended_at_ms, job.next_at_ms,
                    job.set_at_ms, job.attempts, job.claims, job.failures, job.interruptions,
                    job.fatal_attempts, job.retry, job.dead, job.has_failed, job.status, job.keep,
                    job.parent, job.type, job.lane);
}

TEST_F(JobsTest, AJobComesBackWithEveryColumn) {
  Job in;
  in.kind = JobKind::kFiber;
  in.id = "x";
  in.name = "report";
  in.key = "k";
  in.created_at_ms = 10;
  in.started_at_ms = 11;
  in.retry = RetryPolicy{3, milliseconds(5), milliseconds(6)};
  in.status = "running";
  in.fatal_attempts = 1;
  in.parent = "p";
  in.type = "kept";
  in.claim(13);
  jobs_.insert(in);
  EXPECT_EQ(jobs_.find(in.seq)->fatal_attempts, 1) << "a continuation takes it over";
  in.state = JobState::kSettled;
  in.due_at_ms = 99;
  in.ended_at_ms = 12;
  in.next_at_ms = 99;
  in.attempts = 4;
  in.claims = 7;
  in.failures = 2;
  in.interruptions = 1;
  in.fatal_attempts = 3;
  in.dead = true;
  in.has_failed = true;
  in.status = "error";
  in.keep = "failed";
  jobs_.update(in);
  database_.commit();
  EXPECT_EQ(columns(jobs_.find(JobKind::kFiber, "x").value()), columns(in));
  EXPECT_FALSE(jobs_.find(JobKind::kItem, "x"));
  jobs_.erase(in.seq);
  EXPECT_FALSE(jobs_.find(in.seq));
}

TEST_F(JobsTest, ADocumentIsWrittenWithoutItsRow) {
  const Job job = insert("x");
  jobs_.put(job.seq, JobPart::kSnapshot, "1");
  jobs_.put(job.seq, JobPart::kSnapshot, "2");
  jobs_.put(job.seq, JobPart::kInput, "in");
  jobs_.put(job.seq, JobPart::kResult, std::nullopt);
  EXPECT_EQ(jobs_.document(job.seq, JobPart::kSnapshot), "2");
  std::string all;
  jobs_.each_document(job.seq, [&](JobPart, std::string_view body) { all += body; });
  EXPECT_EQ(all, "in2");
  jobs_.put(job.seq, JobPart::kSnapshot, std::nullopt);
  EXPECT_FALSE(jobs_.document(job.seq, JobPart::kSnapshot));
}

TEST_F(JobsTest, ALineIsByTimeAndThenByAge) {
  insert("c", JobKind::kFiber, 5);
  insert("a", JobKind::kFiber, 2);
  insert("b", JobKind::kFiber, 5);
  insert("other", JobKind::kItem, 1);
  EXPECT_EQ(first_due(JobKind::kFiber), "a");
  const auto other = jobs_.first_due(JobKind::kFiber, [](const Job& job) { return job.id != "a"; });
  EXPECT_EQ(other->id, "c");
  Job claimed = *jobs_.find(JobKind::kFiber, "a");
  claimed.claim(1);
  jobs_.update(claimed);
  EXPECT_EQ(first_due(JobKind::kFiber), "c");
}

TEST_F(JobsTest, WhatWasClaimedWaitsAgainAtItsOwnTime) {
  Job running = insert("running", JobKind::kFiber, 3);
  running.claim(1);
  jobs_.update(running);
  Job later = insert("later", JobKind::kFiber, 4);
  later.claim(1);
  later.next_at_ms = 70;
  jobs_.update(later);
  const Job other = insert("other", JobKind::kItem, 1);
  jobs_.release(JobKind::kFiber, 100);
  EXPECT_EQ(first_due(JobKind::kFiber), "running");
  EXPECT_EQ(jobs_.find(later.seq)->due_at_ms, 70);
  EXPECT_EQ(jobs_.find(other.seq)->due_at_ms, 1);
}

TEST_F(JobsTest, WaitsFollowTheClockAndKeepTheirLengths) {
  const auto wait = [this](const char* id, JobKind kind, int claims) {
    Job job = insert(id, kind);
    job.next_at_ms = 10'500;
    job.claims = claims;
    job.wait(10'000);
    jobs_.update(job);
    return job.seq;
  };
  const std::int64_t retry = wait("x", JobKind::kFiber, 0);
  const std::int64_t due = insert("due", JobKind::kFiber, 9'000).seq;
  const std::int64_t alarm = wait("alarm", JobKind::kAlarm, 0);
  const std::int64_t retried_alarm = wait("retried", JobKind::kAlarm, 1);
  const auto times = [&] {
    std::vector<std::int64_t> all;
    for (const std::int64_t seq : {retry, due, alarm, retried_alarm})
      all.push_back(jobs_.find(seq)->due_at_ms.value_or(0));
    return all;
  };
  const auto each_kind = [](const auto& change) {
    for (const JobKind kind : {JobKind::kFiber, JobKind::kAlarm}) change(kind);
  };
  each_kind([&](JobKind kind) { jobs_.shift(kind, -300); });
  EXPECT_EQ(times(), (std::vector<std::int64_t>{10'200, 8'700, 10'500, 10'200}));
  each_kind([&](JobKind kind) { jobs_.restart_waits(kind, 9'700, true); });
  EXPECT_EQ(times(), (std::vector<std::int64_t>{10'200, 8'700, 10'500, 10'200})) << "no jump";
  each_kind([&](JobKind kind) { jobs_.restart_waits(kind, 50, true); });
  EXPECT_EQ(times(), (std::vector<std::int64_t>{550, 50, 10'500, 550}));
  EXPECT_EQ(jobs_.find(retry)->next_at_ms, 550);
  EXPECT_EQ(jobs_.find(due)->next_at_ms, 0);
  each_kind([&](JobKind kind) { jobs_.restart_waits(kind, 500, true); });
  EXPECT_EQ(times(), (std::vector<std::int64_t>{550, 50, 10'500, 550})) << "only once";
  Job without_code = *jobs_.find(alarm);
  without_code.next_at_ms = 0;
  jobs_.update(without_code);
  jobs_.restart_waits(JobKind::kAlarm, 500, true);
  EXPECT_EQ(times(), (std::vector<std::int64_t>{550, 50, 500, 550})) << "it has no time of its own";
}

TEST_F(JobsTest, OnlyWhatIsUnderARetentionExpires) {
  for (const char* id : {"a", "b", "c"}) {
    Job job = insert(id);
    job.ended_at_ms = id[0];
    if (id[0] != 'c') job.keep = "dead";
    jobs_.update(job);
  }
  EXPECT_TRUE(jobs_.expired("dead", 'a' - 1, 10).empty());
  EXPECT_EQ(jobs_.expired("dead", 'a', 10).size(), 1U);
  EXPECT_EQ(jobs_.expired("dead", 'z', 10).size(), 2U);
  EXPECT_EQ(jobs_.expired("dead", 'z', 1).at(0).id, "a");
  EXPECT_TRUE(jobs_.expired("failed", 'z', 10).empty());
}

TEST_F(JobsTest, JobsAreCountedByTheirKind) {
  insert("a", JobKind::kItem);
  insert("b");
  const Job last = insert("c", JobKind::kItem);
  EXPECT_EQ(jobs_.count(JobKind::kItem), 2U);
  EXPECT_GE(jobs_.count_bound(JobKind::kItem), 2U);
  EXPECT_TRUE(jobs_.has_any(JobKind::kItem));
  EXPECT_FALSE(jobs_.has_any(JobKind::kSchedule));
  jobs_.erase(last.seq);
  EXPECT_EQ(jobs_.count_bound(JobKind::kItem), 1U);
}

TEST_F(JobsTest, WhatDiedLongAgoIsFoundWithoutALookAtWhatDiedLately) {
  insert("alive");
  storage::Statement(
      database_.connection(),
      "INSERT INTO cf_agents_jobs(kind, state, id, name, created_at, ended_at, keep) "
      "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 20000) "
      "SELECT 2, 2, 'dead ' || i, 'x', 1, 30000 - i, 'dead' FROM n")
      .execute();
  const hearth::testing::CountedSteps steps(database_);
  const auto expired = jobs_.expired("dead", 10'001, 10);
  ASSERT_EQ(expired.size(), 2U);
  EXPECT_EQ(expired[0].id, "dead 20000");
  EXPECT_TRUE(jobs_.has_any(JobKind::kFiber, JobState::kDead));
  EXPECT_EQ(first_due(JobKind::kFiber), "alive");
  EXPECT_LT(steps.count(), 500U);
}

TEST_F(JobsTest, P3_NoValueOfAParameterCompilesAStatementAgain) {
  insert("a");  // the tables are there
  const auto work = [this] {
    for (const JobKind kind : {JobKind::kFiber, JobKind::kSchedule, JobKind::kItem}) {
      Job job = insert("job " + std::to_string(static_cast<int>(kind)), kind);
      EXPECT_TRUE(jobs_.find(kind, job.id));
      EXPECT_NE(first_due(kind), "");
      EXPECT_TRUE(jobs_.has_any(kind));
      jobs_.keep_trace(kind, job.id, "00-1-1-01");
      EXPECT_EQ(jobs_.trace_of(kind, job.id), "00-1-1-01");
      job.claim(1);
      jobs_.update(job);
      EXPECT_TRUE(jobs_.has_any(kind, JobState::kClaimed));
      jobs_.release(kind, 1);
      jobs_.shift(kind, 1);
      jobs_.restart_waits(kind, 0, true);
      jobs_.put(job.seq, JobPart::kInput, "[1]");
      EXPECT_GT(jobs_.count(kind), 0U);
      EXPECT_GT(jobs_.count_bound(kind), 0U);
      EXPECT_TRUE(jobs_.expired("1h", 1, 1).empty());
      jobs_.erase(job.seq);
    }
  };
  work();
  hearth::testing::compiled_again(database_);
  work();
  EXPECT_EQ(hearth::testing::compiled_again(database_), 0);
}

TEST_F(JobsTest, TablesThatWereRolledBackAreMadeAgain) {
  database_.begin_write();
  storage::Statement(database_.connection(), "SAVEPOINT plugin").execute();
  insert("lost");
  storage::Statement(database_.connection(), "ROLLBACK TO plugin").execute();
  storage::Statement(database_.connection(), "RELEASE plugin").execute();
  insert("kept");
  database_.commit();
  EXPECT_EQ(seen("WHERE kind = 2"), "kept");
}

TEST_F(JobsTest, WorkOfADistantYearDoesNotWaitForCode) {
  constexpr std::int64_t kYearMs = 31'536'000'000;
  Job never = insert("never", JobKind::kNotice, 1);
  never.next_at_ms = 253'402'300'799'999;  // the end of 9999
  never.wait(2);
  jobs_.update(never);
  jobs_.shift(JobKind::kNotice, kYearMs);
  const Job kept = *jobs_.find(never.seq);
  EXPECT_FALSE(kept.waits_for_code());
  EXPECT_EQ(kept.next_at_ms, never.next_at_ms + kYearMs) << "records tell its time";
}

}  // namespace
}  // namespace hearth::durable
