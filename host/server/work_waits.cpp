#include "server/work_waits.hpp"

#include "durable/jobs.hpp"
#include "durable/wake.hpp"
#include "storage/agent_database.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace hearth::server {
namespace {

using durable::JobKind;
using durable::JobState;
using extensions::Wait;
using extensions::WaitKind;

// Of the library of chats; chat_waits() tells it call by call.
constexpr std::string_view kChatQuestion = "hearth.chat";

// Of a row, in the order of kWaitingJobs.
struct WaitingJob {
  JobKind kind{};
  JobState state{};
  std::optional<std::int64_t> due_at_ms{};
  std::string id{};
  std::string name{};
  std::string lane{};
  bool is_dead = false;
  bool is_paused = false;
  bool is_missing = false;  // its callback
  std::int64_t since_ms = 0;
  std::string last_error{};
  std::string callee{};                    // of a notification
  std::optional<std::int64_t> until_ms{};  // it is not tried before

  [[nodiscard]] bool waits_for_code() const {
    return due_at_ms && durable::is_next_version(*due_at_ms);
  }
};

constexpr std::string_view kWaitingJobs =
    "SELECT kind, state, due_at, id, name, coalesce(lane, ''), dead, coalesce(paused, 0), "
    "coalesce(missing, 0), "
    // What fails waits since it began to fail, not since its last try.
    "coalesce(iif(dead OR due_at >= ?2 OR (kind = 2 AND state = 1), NULL, failing_since), "
    "nullif(set_at, 0), created_at), "
    "coalesce((SELECT body FROM cf_agents_job_documents WHERE job = seq AND part = 6), "
    "(SELECT body FROM cf_agents_job_documents WHERE job = seq AND part = 5), ''), "
    "replace(coalesce(key, ''), char(10), '/'), iif(next_at > 0, due_at, NULL) "
    "FROM cf_agents_jobs WHERE dead OR (state < 2 AND ended_at IS NULL) "
    "ORDER BY dead OR coalesce(missing, 0) > 0 OR (due_at IS NOT NULL AND due_at >= ?2) DESC, "
    "due_at LIMIT ?1";

WaitingJob read_job(const storage::Rows& row) {
  return {static_cast<JobKind>(row.integer(0)),
          static_cast<JobState>(row.integer(1)),
          storage::integer_or_none(row, 2),
          std::string(row.text(3)),
          std::string(row.text(4)),
          std::string(row.text(5)),
          row.integer(6) != 0,
          row.integer(7) != 0,
          row.integer(8) != 0,
          row.integer(9),
          std::string(row.text(10)),
          std::string(row.text(11)),
          storage::integer_or_none(row, 12)};
}

WaitKind fiber_wait(const WaitingJob& job, bool is_live) {
  if (job.is_dead) return WaitKind::kDeadFiber;
  if (job.waits_for_code()) return WaitKind::kCode;
  if (job.state == JobState::kClaimed) return is_live ? WaitKind::kRunning : WaitKind::kRetry;
  return job.due_at_ms || job.lane.empty() ? WaitKind::kRetry : WaitKind::kLane;
}

WaitKind schedule_wait(const WaitingJob& job) {
  if (job.is_dead) return WaitKind::kDeadSchedule;
  if (job.is_paused) return WaitKind::kPaused;
  return job.is_missing || job.waits_for_code() ? WaitKind::kNoCallback : WaitKind::kSchedule;
}

WaitKind item_wait(const WaitingJob& job) {
  if (job.is_dead) return WaitKind::kDeadItem;
  return job.waits_for_code() ? WaitKind::kNoCallback : WaitKind::kItem;
}

// Nothing: only the host waits for it.
std::optional<WaitKind> kind_of_job(const WaitingJob& job, bool is_live) {
  switch (job.kind) {
    case JobKind::kFiber: return fiber_wait(job, is_live);
    case JobKind::kSchedule: return schedule_wait(job);
    case JobKind::kItem: return item_wait(job);
    case JobKind::kNotice: return job.is_dead ? WaitKind::kDeadNotice : WaitKind::kNotice;
    case JobKind::kAlarm:
      if (job.waits_for_code()) return WaitKind::kNoCallback;
      return job.is_dead ? WaitKind::kDeadNotice : WaitKind::kAlarm;
    case JobKind::kQuestion:
      if (job.id != kChatQuestion) return WaitKind::kPerson;
      break;
    case JobKind::kTelling: break;
  }
  return std::nullopt;
}

Wait wait_of_job(WaitingJob job, WaitKind kind) {
  Wait wait;
  wait.kind = kind;
  wait.id = job.id;
  const bool asks = kind == WaitKind::kPerson;
  if (!asks) {
    wait.subject = job.kind == JobKind::kFiber    ? std::move(job.id)
                   : job.kind == JobKind::kNotice ? std::move(job.callee)
                                                  : std::move(job.name);
  }
  wait.detail = kind == WaitKind::kLane ? std::move(job.lane)
                : asks                  ? std::move(job.name)
                                        : std::move(job.last_error);
  if (kind == WaitKind::kCode && wait.detail.empty()) wait.detail = "its code is not there";
  wait.since_ms = job.since_ms;
  if (!job.is_dead && kind != WaitKind::kCode && kind != WaitKind::kNoCallback && !job.is_paused)
    wait.until_ms = job.until_ms;
  return wait;
}

}  // namespace

std::vector<Wait> work_waits(storage::AgentDatabase& database, bool is_live) {
  std::vector<Wait> waits;
  if (!durable::Jobs(database).exists()) return waits;
  storage::Statement statement(database.connection(), kWaitingJobs);
  std::size_t count = 0;
  for (storage::Rows rows = statement.query(kMostWaits + 1, durable::kFirstOfNextVersion);
       rows.next();) {
    if (++count > kMostWaits) {
      waits.push_back({.kind = WaitKind::kMore});
      break;
    }
    WaitingJob job = read_job(rows);
    if (const auto kind = kind_of_job(job, is_live))
      waits.push_back(wait_of_job(std::move(job), *kind));
  }
  return waits;
}

}  // namespace hearth::server
