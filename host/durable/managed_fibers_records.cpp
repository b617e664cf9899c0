// How the records of managed fibers are looked at, removed, kept, and told to the agent's code.
#include "base/assert.hpp"
#include "durable/back_off.hpp"
#include "durable/managed_fibers.hpp"

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

constexpr std::chrono::milliseconds kTellBase{1'000};
constexpr std::size_t kMostRecordsListed = 100;
constexpr std::size_t kRecordsListedByDefault = 50;
constexpr std::size_t kMostRemoved = 500;
constexpr std::size_t kRemovedByDefault = 100;
constexpr std::size_t kRecordsSweptAtOnce = 100;  // a millisecond's work
constexpr std::size_t kMaxRecordPageBytes = std::size_t{4} << 20;
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
  const bool failed = record.is_retry();
  record.status = FiberStatus::kRecovering;
  record.next_at_ms = 0;
  const auto standing = fibers_.find(record.id);
  if (!standing) return;
  record.attempts = standing->attempts;
  record.waits_for_code = standing->waits_for_code;
  if (standing->running != 0) {
    record.status = FiberStatus::kRunning;
  } else if (!standing->recovering) {
    if (failed) record.status = FiberStatus::kPending;
    record.next_at_ms = standing->next_at_ms;
  }
}

ManagedChange ManagedFibers::change_of(FiberRecord record) {
  complete(record);
  std::string json = record_json(record);
  return ManagedChange{std::move(record.id), record.status, std::move(json)};
}

Result<FiberRecord> ManagedFibers::find_one(std::string_view id, std::string_view key) {
  if (id.empty() == key.empty()) return bad_query("a fiber is named by its id or by its key");
  const auto job = id.empty() ? jobs_.first("WHERE key = ? AND kind = 2", std::array{Param(key)})
                              : jobs_.find(JobKind::kManaged, id);
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
    const auto job = jobs_.find(JobKind::kManaged, filter.after);
    if (!job) return Error{Errc::kNotFound, "no fiber has the id `after`"};
    after = job->seq;
  }
  const std::array params{Param(after), Param(filter.name), Param(filter.before_ms),
                          Param(std::int64_t{filter.dead}), Param(std::int64_t{statuses})};
  // Those that are open have a line of their own, and what is settled may be much more.
  const bool open_only = (statuses & ~kOpenBits) == 0;
  std::string page = "[";
  std::size_t count = 0;
  const auto see = [&](const Job& job) {
    FiberRecord record = record_of(job);
    complete(record);
    if ((bit(record.status) & statuses) == 0) return true;
    if (count++ > 0) page += ',';
    page += record_json(record);
    return count < limit && page.size() < kMaxRecordPageBytes;
  };
  jobs_.each(open_only ? kOpenRecords : kRecords, params, see);
  return page + "]";
}

const std::vector<std::string>& ManagedFibers::given_up_turns() {
  static_assert(kMostStandingTurns == 20, "the texts say so");
  if (given_up_turns_) return *given_up_turns_;
  std::vector<std::string> ids;
  jobs_.each(HEARTH_GIVEN_UP_TURNS
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
  jobs_.run(
      "INSERT OR IGNORE INTO cf_agents_job_documents(job, part, body) "
      "SELECT seq, 8, '' FROM cf_agents_jobs " HEARTH_GIVEN_UP_TURNS,
      {});
  given_up_turns_ = std::vector<std::string>();
}

std::vector<TurnNews> ManagedFibers::standing_turns() {
  std::vector<TurnNews> news;
  for (const std::string& id : given_up_turns()) {
    const auto job = jobs_.find(JobKind::kManaged, id);
    if (job && job->dead && job->is_turn())
      news.push_back({id, 0, jobs_.document(job->seq, JobPart::kError).value_or("")});
  }
  const std::size_t ended = news.size();
  jobs_.each(
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
  // What waits for somebody's decision goes only by name.
  const std::int64_t dead = filter.dead ? 1 : by_default ? -1 : 0;
  const std::size_t limit = filter.limit == 0 ? kRemovedByDefault : filter.limit;
  std::vector<std::pair<std::int64_t, std::string>> gone;
  jobs_.each("WHERE kind = 2 AND ended_at IS NOT NULL AND (?1 & " HEARTH_STATUS_BIT
             ") <> 0 AND (?2 = '' OR name = ?2) AND (?3 = 0 OR created_at < ?3) AND "
             "(type IS NULL OR type NOT IN ('brief', 'turn') OR dead) AND "
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

void ManagedFibers::follow_clock() {
  const std::int64_t by = jump_.set_back_ms();
  jump_.followed();
  if (by == 0) return;
  jobs_.shift(JobKind::kManaged, JobState::kUntold, by);
  moment_.reset();
}

std::optional<Job> ManagedFibers::first_untold() const {
  return jobs_.first_due(JobKind::kManaged, JobState::kUntold,
                         [this](const Job& job) { return !telling_.contains(job.id); });
}

std::optional<std::int64_t> ManagedFibers::next_moment() const {
  if (!moment_) {
    const auto job = first_untold();
    moment_ = job ? job->due_at_ms : std::nullopt;
  }
  if (!*moment_) return std::nullopt;
  return **moment_ + jump_.set_back_ms();
}

void ManagedFibers::write_telling(Job& job, JobState state, std::int64_t tell_at_ms) {
  job.next_at_ms = tell_at_ms;
  job.state = state;
  job.due_at_ms = state == JobState::kUntold ? std::optional(tell_at_ms) : std::nullopt;
  jobs_.update(job);
  moment_.reset();
}

std::optional<ManagedChange> ManagedFibers::next_untold() {
  follow_clock();
  while (due()) {
    std::optional<Job> job = first_untold();
    HEARTH_ASSERT(job, "a record is to be told, and there is none");
    if (job->interruptions >= settings_.max_tell_interruptions) {
      write_telling(*job, JobState::kSettled, job->next_at_ms);  // retention leaves it alone
      never_told_.push_back(std::move(job->id));
      continue;
    }
    ++job->interruptions;  // until its end is known
    // The first may be anybody's fault: it is told again at once.
    const std::int64_t wait =
        job->interruptions > 1
            ? back_off(job->interruptions - 1, kTellBase, kLongestTellWait, random_).count()
            : 0;
    write_telling(*job, JobState::kClaimed, now_ms() + wait);
    telling_.emplace(job->id, Telling{job->tell_failures, job->interruptions});
    return change_of(record_of(*job));
  }
  return std::nullopt;
}

// Settled once more, retried or removed in the meantime: that is another thing to tell, or none.
std::optional<Job> ManagedFibers::find_telling(std::string_view id) {
  auto job = jobs_.find(JobKind::kManaged, id);
  if (!job || job->state != JobState::kClaimed || !job->ended_at_ms) return std::nullopt;
  return job;
}

void ManagedFibers::told(std::string_view id, bool heard) {
  const auto telling = telling_.find(id);
  if (telling == telling_.end()) return;
  const int failures = telling->second.failures + 1;
  telling_.erase(telling);
  moment_.reset();
  std::optional<Job> job = find_telling(id);
  if (!job) return;
  if (heard) {
    if (job->status == "completed" || job->status == "aborted") job->keep = "completed";
    if (job->status == "error" && (!job->dead || job->is_brief())) job->keep = "failed";
    return write_telling(*job, JobState::kSettled, job->next_at_ms);
  }
  job->tell_failures = failures;
  job->interruptions = 0;
  write_telling(*job, JobState::kUntold,
                now_ms() + back_off(failures, kTellBase, kLongestTellWait, random_).count());
}

void ManagedFibers::interrupt_on_purpose() {
  for (const auto& [id, telling] : telling_) {
    std::optional<Job> job = find_telling(id);
    if (!job) continue;
    job->interruptions = telling.interruptions - 1;
    write_telling(*job, JobState::kUntold, now_ms());
  }
}

bool ManagedFibers::sweep() {
  const std::int64_t now = now_ms();
  std::size_t erased = 0;
  const auto sweep_kept = [&](std::string_view keep, std::chrono::milliseconds how_long) {
    for (const Job& job : jobs_.expired(keep, now - how_long.count(), kRecordsSweptAtOnce)) {
      erase_record(job.seq, job.id);
      if (job.dead) expired_.push_back(job.id);
      ++erased;
    }
  };
  sweep_kept("completed", settings_.keep_completed);
  sweep_kept("failed", settings_.keep_failed);
  return erased > 0;
}

bool ManagedFibers::due() const {
  const auto moment = next_moment();
  return moment && *moment <= now_ms();
}

Wake ManagedFibers::wake() const {
  Wake wake;
  wake.working = !telling_.empty() || due();  // this instance tells it at once
  if (const auto moment = next_moment(); moment && *moment > now_ms()) wake.at_ms = moment;
  return wake;
}

}  // namespace hearth::durable
