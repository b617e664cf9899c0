// The records of fibers: listing, removal, retention, and telling the agent's code.
#include "base/assert.hpp"
#include "durable/back_off.hpp"
#include "durable/managed_fibers.hpp"
#include "durable/record_page.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

namespace hearth::durable {

using storage::Param;

namespace {

#define HEARTH_STATUS_BIT                                                        \
  "CASE status WHEN 'interrupted' THEN 8 WHEN 'completed' THEN 16 WHEN 'error' " \
  "THEN 32 WHEN 'aborted' THEN 64 ELSE 0 END"
// Newest first. ?1 older than, ?2 name, ?3 created before, ?4 dead ones only, ?5 status bits.
#define HEARTH_RECORD_FILTER                                             \
  "seq < ?1 AND (?2 = '' OR name = ?2) AND (?3 = 0 OR created_at < ?3) " \
  "AND (?4 = 0 OR dead)"
constexpr std::string_view kRecords =
    "WHERE kind = 2 AND " HEARTH_RECORD_FILTER
    " AND (ended_at IS NULL AND (?5 & 7) <> 0 OR ended_at IS NOT NULL AND (?5 & " HEARTH_STATUS_BIT
    ") <> 0) ORDER BY seq DESC";
constexpr std::string_view kOpenRecords =
    "INDEXED BY cf_agents_jobs_open WHERE kind = 2 AND ended_at IS NULL AND ?5 <> 0 "
    "AND " HEARTH_RECORD_FILTER " ORDER BY seq DESC";

#define HEARTH_GIVEN_UP_TURNS "WHERE kind = 2 AND dead AND type IN ('turn', 'kept turn')"

constexpr std::size_t kMostRecordsListed = 100;
constexpr std::size_t kRecordsListedByDefault = 50;
constexpr std::size_t kMostRemoved = 500;
constexpr std::size_t kRemovedByDefault = 100;
constexpr std::size_t kRecordsSweptAtOnce = 100;  // a millisecond's work
constexpr std::uint32_t kOpenBits = 7;

constexpr std::uint32_t bit(FiberStatus status) {
  return static_cast<std::uint32_t>(status);
}

Error bad_query(const char* why) {
  return Error{Errc::kInvalidArgument, why};
}

}  // namespace

// ---- looking ------------------------------------------------------------------------------------

void ManagedFibers::complete(FiberRecord& record) {
  if (record.settled()) return;
  const bool is_pending = record.is_pending();
  record.status = FiberStatus::kRecovering;
  record.next_at_ms = 0;
  const auto standing = fibers_.find(record.id);
  if (!standing) return;
  record.attempts = standing->attempts;
  record.waits_for_code = standing->waits_for_code;
  if (standing->running != 0) {
    record.status = FiberStatus::kRunning;
  } else if (!standing->recovering) {
    if (is_pending) record.status = FiberStatus::kPending;
    record.next_at_ms = standing->next_at_ms;
  }
}

ManagedChange ManagedFibers::change_of(FiberRecord record) {
  complete(record);
  std::string json = record_json(record);
  return ManagedChange{std::move(record.id), record.seq, record.status, std::move(json)};
}

Result<FiberRecord> ManagedFibers::find_one(std::string_view id, std::string_view key) {
  if (id.empty() == key.empty()) return bad_query("a fiber is named by its id or by its key");
  const auto job = id.empty() ? jobs().first("WHERE key = ? AND kind = 2", std::array{Param(key)})
                              : jobs().find(JobKind::kManaged, id);
  if (!job) return Error{Errc::kNotFound, "no fiber has this id or key"};
  return record_of(*job);
}

Result<std::string> ManagedFibers::inspect(std::string_view id, std::string_view key) {
  auto record = find_one(id, key);
  if (record.has_error()) return record.error();
  return change_of(std::move(*record)).record;
}

Result<std::string> ManagedFibers::list(const ManagedFilter& filter) {
  if (filter.limit > kMostRecordsListed) return bad_query("a page has at most 100 records");
  const std::size_t limit = filter.limit == 0 ? kRecordsListedByDefault : filter.limit;
  const std::uint32_t statuses = filter.statuses == 0 ? UINT32_MAX : filter.statuses;
  std::int64_t after = INT64_MAX;
  if (!filter.after.empty()) {
    const auto job = jobs().find(JobKind::kManaged, filter.after);
    if (!job) return Error{Errc::kNotFound, "no fiber has the id `after`"};
    after = job->seq;
  }
  const std::array params{Param(after), Param(filter.name), Param(filter.before_ms),
                          Param(std::int64_t{filter.dead}), Param(std::int64_t{statuses})};
  // Open records have an index of their own; there may be many more settled ones.
  const bool open_only = (statuses & ~kOpenBits) == 0;
  RecordPage page(limit);
  const auto see = [&](const Job& job) {
    FiberRecord record = record_of(job);
    complete(record);
    if ((bit(record.status) & statuses) == 0) return true;
    return page.add(record_json(record));
  };
  jobs().each(open_only ? kOpenRecords : kRecords, params, see);
  return page.take();
}

const std::vector<std::string>& ManagedFibers::given_up_turns() {
  static_assert(kMostStandingTurns == 20, "the texts say so");
  if (given_up_turns_) return *given_up_turns_;
  std::vector<std::string> ids;
  jobs().each(
      HEARTH_GIVEN_UP_TURNS
      " AND NOT EXISTS (SELECT 1 FROM cf_agents_job_documents WHERE job = seq AND part = 8) "
      "ORDER BY seq DESC LIMIT 20",
      {}, [&](const Job& job) {
        ids.push_back(job.id);
        return true;
      });
  std::ranges::reverse(ids);
  return given_up_turns_.emplace(std::move(ids));
}

void ManagedFibers::pass_given_up_turns() {
  if (given_up_turns().empty()) return;
  static_assert(static_cast<int>(JobPart::kPassed) == 8, "the texts say so");
  jobs().run(
      "INSERT OR IGNORE INTO cf_agents_job_documents(job, part, body) "
      "SELECT seq, 8, '' FROM cf_agents_jobs " HEARTH_GIVEN_UP_TURNS,
      {});
  given_up_turns_ = std::vector<std::string>();
}

std::vector<TurnNews> ManagedFibers::standing_turns() {
  std::vector<TurnNews> news;
  for (const std::string& id : given_up_turns()) {
    const auto job = jobs().find(JobKind::kManaged, id);
    if (job && job->dead && job->is_turn())
      news.push_back({id, 0, jobs().document(job->seq, JobPart::kError).value_or("")});
  }
  const std::size_t ended = news.size();
  jobs().each(
      "INDEXED BY cf_agents_jobs_open WHERE kind = 2 AND ended_at IS NULL AND claims > 0 AND "
      "type IN ('turn', 'kept turn') ORDER BY seq DESC LIMIT 20",
      {}, [&](const Job& job) {
        news.push_back({job.id, job.claims});
        return true;
      });
  std::reverse(news.begin() + static_cast<std::ptrdiff_t>(ended), news.end());
  return news;
}

Result<std::uint64_t> ManagedFibers::remove(const ManagedFilter& filter) {
  if (filter.limit > kMostRemoved) return bad_query("at most 500 records are removed at once");
  const bool by_default = filter.statuses == 0;
  constexpr std::uint32_t kSettledByDefault =
      bit(FiberStatus::kCompleted) | bit(FiberStatus::kError) | bit(FiberStatus::kAborted);
  // Records that wait for a decision (dead or interrupted) are removed only if the filter names
  // them.
  const std::int64_t dead = filter.dead ? 1 : by_default ? -1 : 0;
  const std::size_t limit = filter.limit == 0 ? kRemovedByDefault : filter.limit;
  std::vector<std::pair<std::int64_t, std::string>> gone;
  jobs().each("WHERE kind = 2 AND ended_at IS NOT NULL AND (?1 & " HEARTH_STATUS_BIT
              ") <> 0 AND (?2 = '' OR name = ?2) AND (?3 = 0 OR created_at < ?3) AND "
              "(type NOT IN ('brief', 'turn') OR dead) AND "
              "(?4 = 0 OR (?4 = 1) = dead) ORDER BY ended_at, seq LIMIT ?5",
              std::array{Param(std::int64_t{by_default ? kSettledByDefault : filter.statuses}),
                         Param(filter.name), Param(filter.before_ms), Param(dead),
                         Param(static_cast<std::int64_t>(limit))},
              [&](const Job& job) {
                gone.emplace_back(job.seq, job.id);
                return true;
              });
  for (const auto& [seq, id] : gone) erase_record(seq, id);
  return gone.size();
}

// ---- telling ------------------------------------------------------------------------------------

// A record that is being told may have been settled once more. Its next telling waits for the end
// of this one.
std::optional<Job> ManagedFibers::next_due() {
  return jobs().first_due(JobKind::kManaged, JobState::kUntold,
                          [this](const Job& job) { return !line().is_claimed(job.id); });
}

void ManagedFibers::settle_row(Job& job) {
  job.state = JobState::kSettled;
  job.due_at_ms.reset();
  jobs().update(job);
  line().changed();
}

// Sets no Job::keep: retention does not remove a record that was not told.
void ManagedFibers::give_up(Job& job, std::string_view /*why*/) {
  settle_row(job);
}

std::optional<ManagedChange> ManagedFibers::next_untold() {
  const std::optional<Job> job = CountedJobs::begin();
  if (!job) return std::nullopt;
  return change_of(record_of(*job));
}

std::optional<Job> ManagedFibers::claimed_row(std::string_view id) {
  auto job = CountedJobs::claimed_row(id);
  if (job && !job->ended_at_ms) job.reset();
  return job;
}

void ManagedFibers::told(std::string_view id, bool heard) {
  (void)end(id, heard ? TryOutcome::kDone : TryOutcome::kFailed, std::nullopt);
}

void ManagedFibers::done(Job& job) {
  if (job.status == "completed" || job.status == "aborted") job.keep = "completed";
  if (job.status == "error" && (!job.dead || job.is_brief())) job.keep = "failed";
  settle_row(job);
}

std::optional<std::int64_t> ManagedFibers::failed(Job& job) {
  ++job.tell_failures;
  return now_ms() + back_off(job.tell_failures, kFirstWait, kLongestWait, random()).count();
}

bool ManagedFibers::sweep() {
  const std::int64_t now = now_ms();
  std::size_t erased = 0;
  const auto sweep_kept = [&](std::string_view keep, std::chrono::milliseconds how_long) {
    for (const Job& job : jobs().expired(keep, now - how_long.count(), kRecordsSweptAtOnce)) {
      erase_record(job.seq, job.id);
      if (job.dead) expired_.push_back(job.id);
      ++erased;
    }
  };
  sweep_kept("completed", settings_.keep_completed);
  sweep_kept("failed", settings_.keep_failed);
  return erased > 0;
}

}  // namespace hearth::durable
