#include "durable/fiber_table.hpp"

#include "base/sha256.hpp"
#include "base/utf8.hpp"
#include "durable/fiber_counts.hpp"

#include <algorithm>
#include <span>
#include <utility>

namespace hearth::durable {

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
constexpr std::uint32_t kOpenBits = 7;

constexpr std::size_t kMaxMarkBytes = 256;

// The part number of a mark's document: 62 bits of its hash, after the numbers of other documents.
std::int64_t part_of(std::string_view mark) {
  const Sha256Digest digest = sha256(mark);
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < sizeof number; ++i)
    number = number << 8U | std::to_integer<std::uint64_t>(std::as_bytes(std::span(digest))[i]);
  return static_cast<std::int64_t>(number >> 2U) + kFirstMark;
}

}  // namespace

std::optional<Job> FiberTable::keyed(std::string_view key) {
  return jobs_.first("WHERE key = ? AND kind = 2", key);
}

Result<Job> FiberTable::find_one(std::string_view id, std::string_view key) {
  if (id.empty() == key.empty())
    return Error{Errc::kInvalidArgument, "a fiber is named by its id or by its key"};
  auto job = id.empty() ? keyed(key) : find(id);
  if (!job) return Error{Errc::kNotFound, "no fiber has this id or key"};
  return *std::move(job);
}

Result<std::optional<Job>> FiberTable::find_named(std::string_view id, std::string_view key) {
  std::optional<Job> by_id;
  if (!id.empty()) by_id = find(id);
  std::optional<Job> by_key;
  if (!key.empty()) by_key = keyed(key);
  if (by_id && by_key && by_id->seq != by_key->seq)
    return Error{Errc::kInvalidArgument, "this id and this key name different fibers"};
  return by_key ? std::move(by_key) : std::move(by_id);
}

bool FiberTable::is_open(std::string_view id) {
  const auto job = find(id);
  return job && !job->ended_at_ms;
}

FiberRecord FiberTable::with_documents(Job job) {
  FiberRecord record{.job = std::move(job)};
  jobs_.each_document(record.job.seq, [&](JobPart part, std::string_view body) {
    if (part == JobPart::kInput) record.input = body;
    if (part == JobPart::kMetadata) record.metadata = body;
    if (part == JobPart::kSnapshot) record.snapshot = body;
    if (part == JobPart::kResult) record.result = body;
    if (part == JobPart::kError) record.error = body;
    if (part == JobPart::kReason) record.reason = body;
  });
  return record;
}

FiberStatus status_of(const Job& row, FiberNow now) {
  // An unknown word was not written by this server. The fiber then counts as interrupted.
  if (row.ended_at_ms)
    return fiber_status(row.status.value_or("")).value_or(FiberStatus::kInterrupted);
  if (now == FiberNow::kRuns) return FiberStatus::kRunning;
  return now == FiberNow::kNothing && is_pending(row) ? FiberStatus::kPending
                                                      : FiberStatus::kRecovering;
}

FiberChange FiberTable::change_of(Job job, FiberNow now) {
  FiberRecord record = with_documents(std::move(job));
  const Job& row = record.job;
  record.status = status_of(row, now);
  if (!row.ended_at_ms && now == FiberNow::kNothing) {
    record.next_at_ms = row.next_at_ms;
    record.waits_for_code = row.waits_for_code();
  }
  return {row.id, row.seq, record.status, record_json(record)};
}

void FiberTable::put_outcome(std::int64_t seq, const FiberOutcome& outcome) {
  jobs_.put(seq, JobPart::kResult, outcome.result);
  jobs_.put(seq, JobPart::kReason, outcome.reason);
  jobs_.put(seq, JobPart::kError, outcome.error);
  if (outcome.snapshot) jobs_.put(seq, JobPart::kSnapshot, outcome.snapshot);
  if (outcome.metadata) jobs_.put(seq, JobPart::kMetadata, outcome.metadata);
}

Result<void> FiberTable::each(const FiberFilter& filter, const std::function<bool(Job&)>& see) {
  std::int64_t after = INT64_MAX;
  if (!filter.after.empty()) {
    const auto job = find(filter.after);
    if (!job) return Error{Errc::kNotFound, "no fiber has the id `after`"};
    after = job->seq;
  }
  const std::uint32_t statuses = filter.statuses == 0 ? UINT32_MAX : filter.statuses;
  // Open records have an index of their own; there may be many more settled ones.
  const bool open_only = (statuses & ~kOpenBits) == 0;
  jobs_.each(open_only ? kOpenRecords : kRecords,
             storage::params_of(after, filter.name, filter.before_ms, filter.dead, statuses), see);
  return {};
}

std::vector<Job> FiberTable::to_remove(const FiberFilter& filter) {
  constexpr auto kSettledByDefault = static_cast<std::uint32_t>(FiberStatus::kCompleted) |
                                     static_cast<std::uint32_t>(FiberStatus::kError) |
                                     static_cast<std::uint32_t>(FiberStatus::kAborted);
  const bool by_default = filter.statuses == 0;
  // Records that wait for a decision (dead or interrupted) are removed only if the filter names
  // them.
  const std::int64_t dead = filter.dead ? 1 : by_default ? -1 : 0;
  return jobs_.all("WHERE kind = 2 AND ended_at IS NOT NULL AND (?1 & " HEARTH_STATUS_BIT
                   ") <> 0 AND (?2 = '' OR name = ?2) AND (?3 = 0 OR created_at < ?3) AND "
                   "(type NOT IN ('brief', 'turn') OR dead) AND "
                   "(?4 = 0 OR (?4 = 1) = dead) ORDER BY ended_at, seq LIMIT ?5",
                   by_default ? kSettledByDefault : filter.statuses, filter.name, filter.before_ms,
                   dead, filter.limit);
}

// ---- lanes --------------------------------------------------------------------------------------

bool FiberTable::is_taken(const std::optional<std::string>& lane) {
  return lane && jobs_.first("WHERE lane = ? AND ended_at IS NULL LIMIT 1", *lane);
}

void FiberTable::pass_lane(const std::optional<std::string>& lane, std::int64_t now_ms) {
  if (!lane) return;
  jobs_.run(
      "UPDATE cf_agents_jobs SET due_at = min(created_at, ?2), set_at = ?2 WHERE seq = (SELECT "
      "min(seq) FROM cf_agents_jobs WHERE lane = ?1 AND ended_at IS NULL) "
      "AND state = 0 AND due_at IS NULL",
      *lane, now_ms);
}

// ---- inner fibers -------------------------------------------------------------------------------

void FiberTable::add_open(std::string_view parent, std::vector<std::string>& ids) {
  jobs_.each("WHERE parent = ? AND +kind = 2 AND ended_at IS NULL", storage::params_of(parent),
             [&](Job& job) {
               ids.push_back(std::move(job.id));
               return true;
             });
}

bool FiberTable::remove_children(std::string_view parent) {
  // Most have none. The statements below take 20 KB of memory, this one 2 KB.
  if (!jobs_.number("SELECT 1 FROM cf_agents_jobs WHERE parent = ? LIMIT 1", parent)) return false;
  const std::int64_t removed = jobs_.run(
      "DELETE FROM cf_agents_jobs WHERE parent = ? AND +kind = 2 AND type = 'brief' "
      "AND ended_at IS NOT NULL AND dead = 0",
      parent);
  jobs_.run(
      "UPDATE cf_agents_jobs SET key = NULL WHERE parent = ?1 AND +kind = 2 AND type = 'kept' "
      "AND ended_at IS NOT NULL AND substr(key, 1, length(?1) + 1) = ?1 || '/'",
      parent);
  return removed > 0;
}

// ---- marks --------------------------------------------------------------------------------------

Result<bool> FiberTable::mark(std::int64_t seq, std::string_view mark) {
  if (mark.empty() || mark.size() > kMaxMarkBytes || !is_valid_utf8(mark))
    return Error{Errc::kInvalidArgument, "what is done once has a name of 1 to 256 bytes of UTF-8"};
  // If two marks have one hash, the second gets the next free number.
  for (std::int64_t part = part_of(mark);; ++part) {
    const auto there = jobs_.document(seq, static_cast<JobPart>(part));
    if (there && *there == mark) return false;
    if (there) continue;
    const auto count = jobs_.number(
        "SELECT count(*) FROM cf_agents_job_documents WHERE job = ? AND part >= 16", seq);
    if (count.value_or(0) >= static_cast<std::int64_t>(kMostMarks))
      return Error{Errc::kLimitExceeded, "a fiber does at most 10,000 things once"};
    jobs_.put(seq, static_cast<JobPart>(part), mark);
    return true;
  }
}

}  // namespace hearth::durable
