#include "server/work_waits.hpp"

#include "durable/jobs.hpp"
#include "durable/wake.hpp"
#include "storage/agent_database.hpp"
#include "support/temp_directory.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

namespace hearth::server {
namespace {

using durable::Job;
using durable::JobKind;
using durable::JobPart;
using durable::JobState;
using extensions::Wait;
using extensions::WaitKind;

struct WaitRow {
  const char* name;
  std::function<void(Job&)> made;
  bool is_live;
  WaitKind kind;
  std::optional<std::int64_t> until_ms;
};

Job job_of(JobKind kind) {
  Job job;
  job.kind = kind;
  job.id = "id";
  job.name = "name";
  if (kind == JobKind::kNotice) job.key = "Room\nb c";
  job.created_at_ms = 100;
  job.next_at_ms = 500;
  job.wait(200);
  return job;
}

std::function<void(Job&)> made(JobKind kind, const std::function<void(Job&)>& change = {}) {
  return [kind, change](Job& job) {
    job = job_of(kind);
    if (change) change(job);
  };
}

void dead(Job& job) {
  job.dead = true;
  job.state = JobState::kDead;
}
void for_code(Job& job) {
  job.wait(200);
  job.due_at_ms = durable::kNextVersion;
}

const std::vector<WaitRow> kWorkRows = {
    {"a fiber that runs",
     made(JobKind::kFiber, [](Job& job) { job.claim(200); }),
     true,
     WaitKind::kRunning,
     {}},
    {"a fiber that was interrupted",
     made(JobKind::kFiber, [](Job& job) { job.claim(200); }),
     false,
     WaitKind::kRetry,
     {}},
    {"a fiber between two tries", made(JobKind::kFiber), true, WaitKind::kRetry, 500},
    {"a fiber in a lane",
     made(JobKind::kFiber,
          [](Job& job) {
            job.lane = "turns";
            job.due_at_ms.reset();
          }),
     true,
     WaitKind::kLane,
     {}},
    {"a fiber that waits for code", made(JobKind::kFiber, for_code), false, WaitKind::kCode, {}},
    {"a dead fiber", made(JobKind::kFiber, dead), false, WaitKind::kDeadFiber, {}},
    {"a schedule", made(JobKind::kSchedule), false, WaitKind::kSchedule, 500},
    {"a dead schedule", made(JobKind::kSchedule, dead), false, WaitKind::kDeadSchedule, {}},
    {"an item", made(JobKind::kItem), false, WaitKind::kItem, 500},
    {"an item without a callback", made(JobKind::kItem, for_code), true, WaitKind::kNoCallback, {}},
    {"a dead item", made(JobKind::kItem, dead), true, WaitKind::kDeadItem, {}},
    {"a notification", made(JobKind::kNotice), true, WaitKind::kNotice, 500},
    {"a dead notification", made(JobKind::kNotice, dead), true, WaitKind::kDeadNotice, {}},
    {"an alarm", made(JobKind::kAlarm), true, WaitKind::kAlarm, 500},
};

class WorkWaitsTest : public ::testing::Test {
 protected:
  const hearth::testing::TempDirectory directory_;
  storage::AgentDatabase database_{directory_.path() / "a.db", {"Worker", "a"}};
};

TEST_F(WorkWaitsTest, EachJobIsAWaitOfItsKind) {
  for (const WaitRow& row : kWorkRows) {
    SCOPED_TRACE(row.name);
    const hearth::testing::TempDirectory directory;
    storage::AgentDatabase database(directory.path() / "a.db", {"Worker", "a"});
    durable::Jobs jobs(database);
    Job job;
    row.made(job);
    jobs.insert(job);
    jobs.update(job);
    jobs.put(job.seq, JobPart::kLastError, "why");
    const std::vector<Wait> waits = work_waits(database, row.is_live);
    ASSERT_EQ(waits.size(), 1U);
    EXPECT_EQ(waits[0].kind, row.kind);
    EXPECT_EQ(waits[0].subject, job.kind == JobKind::kFiber    ? "id"
                                : job.kind == JobKind::kNotice ? "Room/b c"
                                                               : "name");
    EXPECT_EQ(waits[0].detail, row.kind == WaitKind::kLane ? "turns" : "why");
    EXPECT_EQ(waits[0].since_ms, 200);
    EXPECT_EQ(waits[0].until_ms, row.until_ms);
  }
}

TEST_F(WorkWaitsTest, WhatFailsWaitsSinceItBeganToAndWhatIsAtItsTurnHasNoMoment) {
  durable::Jobs jobs(database_);
  Job job = job_of(JobKind::kItem);
  job.next_at_ms = 0;
  job.wait(200);
  jobs.insert(job);
  const auto is_since = [&](std::int64_t since_ms, std::optional<std::int64_t> until_ms) {
    jobs.update(job);
    const std::vector<Wait> waits = work_waits(database_, true);
    EXPECT_EQ(waits.at(0).since_ms, since_ms);
    EXPECT_EQ(waits.at(0).until_ms, until_ms);
  };
  is_since(200, {});
  for (job.failures = 1; job.failures < 4; ++job.failures) {
    job.next_at_ms = 1'000 * job.failures;
    job.wait(300 * job.failures);
    EXPECT_FALSE(jobs.needs_person());
    is_since(300, job.next_at_ms);
    job.claim(400 * job.failures);
    is_since(300, {});
  }
  job.kind = JobKind::kFiber;  // one that runs again runs since then
  jobs.run("UPDATE cf_agents_jobs SET kind = 2", {});
  is_since(1'200, {});
  EXPECT_TRUE(jobs.needs_person() && jobs.any_needs_person());
  job.failures = 0;
  job.claim(2'000);
  is_since(2'000, {});
  EXPECT_FALSE(jobs.any_needs_person());
}

TEST_F(WorkWaitsTest, AScheduleThatFailedOnceDoesNotFailForEver) {
  durable::Jobs jobs(database_);
  Job job = job_of(JobKind::kSchedule);
  jobs.insert(job);
  for (job.failures = 1; job.failures < 9; ++job.failures) {
    job.next_at_ms += 1'000;
    job.wait(500 * job.failures);
    jobs.update(job);
  }
  EXPECT_EQ(work_waits(database_, true).at(0).since_ms, 4'000);
  EXPECT_FALSE(jobs.needs_person() || jobs.any_needs_person());
}

TEST_F(WorkWaitsTest, SettledAndTellingJobsAreNoWaits) {
  EXPECT_TRUE(work_waits(database_, false).empty()) << "and nothing is made";
  EXPECT_FALSE(database_.exists());
  durable::Jobs jobs(database_);
  Job settled = job_of(JobKind::kFiber);
  settled.state = JobState::kSettled;
  settled.ended_at_ms = 300;
  settled.due_at_ms.reset();
  jobs.insert(settled);
  Job telling = job_of(JobKind::kTelling);
  jobs.insert(telling);
  EXPECT_TRUE(work_waits(database_, false).empty());
}

TEST_F(WorkWaitsTest, OfManyJobsThoseForAPersonComeFirstAndTheRestIsSaid) {
  durable::Jobs jobs(database_);
  for (std::size_t i = 0; i <= kMostWaits; ++i) {
    Job job = job_of(JobKind::kItem);
    job.id = std::to_string(i);
    if (i % 2 == 0) job.kind = JobKind::kSchedule;
    if (i == kMostWaits - 1) for_code(job);
    if (i == kMostWaits) {
      job.kind = JobKind::kItem;
      dead(job);
    }
    jobs.insert(job);
    jobs.update(job);
  }
  const std::vector<Wait> waits = work_waits(database_, false);
  ASSERT_EQ(waits.size(), kMostWaits + 1);
  EXPECT_EQ(std::ranges::count(waits, WaitKind::kDeadItem, &Wait::kind), 1);
  EXPECT_EQ(std::ranges::count(waits, WaitKind::kNoCallback, &Wait::kind), 1);
  EXPECT_EQ(waits.back().kind, WaitKind::kMore);
}

}  // namespace
}  // namespace hearth::server
