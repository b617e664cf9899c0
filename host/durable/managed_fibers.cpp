#include "durable/managed_fibers.hpp"

#include "base/assert.hpp"
#include "base/utf8.hpp"
#include "durable/back_off.hpp"
#include "json/json_scanner.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace hearth::durable {

using storage::Param;

namespace {

constexpr std::string_view kByKey = "WHERE key = ? AND kind = 2";
constexpr std::size_t kMaxLabelBytes = 256;  // of a name, an id and a key
constexpr std::uint32_t kMostRetries = 1'000;
constexpr std::uint64_t kRetryBaseMs = 1'000;
constexpr std::uint64_t kRetryCapMs = 300'000;
constexpr std::uint64_t kLongestRetryMs = std::uint64_t{24} * 3600 * 1000;

Error bad_request(std::string why) {
  return Error{Errc::kInvalidArgument, std::move(why)};
}

// Checks a name, an id or a key. Empty is allowed: none.
Result<void> check_label(std::string_view what, std::string_view label) {
  if (label.empty()) return {};
  if (label.find_first_not_of(" \t\r\n\f\v") == std::string_view::npos) {
    return bad_request("a fiber's " + std::string(what) + " may not be blank");
  }
  if (label.size() > kMaxLabelBytes || !is_valid_utf8(label) ||
      label.find('\0') != std::string_view::npos) {
    return bad_request("a fiber's " + std::string(what) + " is 1 to 256 bytes of UTF-8");
  }
  return {};
}

Result<void> check_json(std::string_view what, std::string_view json, std::size_t max_bytes) {
  if (json.size() > max_bytes) {
    return Error{Errc::kLimitExceeded, "a fiber's " + std::string(what) + " is larger than " +
                                           std::to_string(max_bytes) + " bytes"};
  }
  if (!json.empty() && !is_json(json)) {
    return bad_request("a fiber's " + std::string(what) + " must be JSON");
  }
  return {};
}

Result<void> check_retry(const ManagedRequest& request) {
  const std::uint64_t base = request.retry_base_ms == 0 ? kRetryBaseMs : request.retry_base_ms;
  const std::uint64_t cap = request.retry_max_ms == 0 ? kRetryCapMs : request.retry_max_ms;
  if (request.max_retries > kMostRetries) return bad_request("there are at most 1,000 retries");
  if (cap > kLongestRetryMs) return bad_request("the longest wait is above one day");
  if (base > cap) return bad_request("the first wait is above the longest one");
  return {};
}

Result<void> check_request(const ManagedRequest& request, std::size_t max_json_bytes) {
  if (request.policy > SettledKey::kReplaceFailed) {
    return bad_request("there is no such policy for a settled fiber");
  }
  if (request.name.empty()) return bad_request("a fiber's name is 1 to 256 bytes of UTF-8");
  for (const auto& checked :
       {check_label("name", request.name), check_label("id", request.id),
        check_label("key", request.key), check_label("lane", request.lane),
        check_json("input", request.input, max_json_bytes),
        check_json("metadata", request.metadata, max_json_bytes), check_retry(request)}) {
    if (checked.has_error()) return checked.error();
  }
  if (request.is_turn && !request.parent.empty())
    return bad_request("a fiber that another one waits for is no turn of its own");
  if (!request.lane.empty() && !request.parent.empty())
    return bad_request("a fiber that another one waits for has no lane");
  return {};
}

// In the column `type`.
std::string type_of(FiberKeeping keeping, bool is_turn) {
  if (is_turn) return keeping == FiberKeeping::kBrief ? "turn" : "kept turn";
  return keeping == FiberKeeping::kBrief ? "brief" : "kept";
}

std::optional<std::string> none_if_empty(std::string_view text) {
  if (text.empty()) return std::nullopt;
  return std::string(text);
}

std::string error_text(std::string_view text) {
  return std::string(text.substr(0, kMaxJobErrorBytes));
}

}  // namespace

ManagedFibers::ManagedFibers(storage::AgentDatabase& database, Fibers& fibers, const Clock& clock,
                             Random& random, ManagedSettings settings, int max_crashes)
    : CountedJobs(database, clock, random,
                  {.kind = JobKind::kManaged,
                   .waits_as = JobState::kUntold,
                   .at_once = kMostTelling,
                   .max_crashes = max_crashes}),
      fibers_(fibers),
      settings_(settings) {}

// ---- what an earlier instance left --------------------------------------------------------------

void ManagedFibers::load() {
  if (!jobs().exists()) return;
  CountedJobs::load();
  std::vector<std::string> given_up;
  jobs().each("WHERE kind = 2 AND state = 2", {}, [&](const Job& job) {
    given_up.push_back(job.id);
    return true;
  });
  for (const std::string& id : given_up) died(id, fibers_.last_error(id).value_or(""));
}

// ---- records and rows ---------------------------------------------------------------------------

FiberRecord ManagedFibers::record_of(const Job& job) {
  FiberRecord record;
  record.seq = job.seq;
  record.id = job.id;
  record.key = job.key;
  record.name = job.name;
  // An unknown word was not written by this server. The fiber then counts as interrupted.
  record.status = fiber_status(job.status.value_or("")).value_or(FiberStatus::kInterrupted);
  record.dead = job.dead;
  record.keeping = job.is_brief() ? FiberKeeping::kBrief : FiberKeeping::kKept;
  record.parent = job.parent;
  record.is_turn = job.is_turn();
  record.lane = job.lane;
  record.created_at_ms = job.created_at_ms;
  record.started_at_ms = job.started_at_ms;
  record.completed_at_ms = job.ended_at_ms;
  record.attempts = job.attempts;
  record.failures = static_cast<std::uint32_t>(job.failures);
  record.max_retries = static_cast<std::uint32_t>(job.retry.max_attempts);
  record.retry_base = job.retry.base;
  record.retry_cap = job.retry.cap;
  if (!record.settled()) record.next_at_ms = job.next_at_ms;
  jobs().each_document(job.seq, [&](JobPart part, std::string_view body) {
    if (part == JobPart::kInput) record.input = body;
    if (part == JobPart::kMetadata) record.metadata = body;
    if (part == JobPart::kSnapshot) record.snapshot = body;
    if (part == JobPart::kResult) record.result = body;
    if (part == JobPart::kError) record.error = body;
    if (part == JobPart::kReason) record.reason = body;
  });
  return record;
}

std::optional<FiberRecord> ManagedFibers::find_record(std::string_view id) {
  const auto job = jobs().find(JobKind::kManaged, id);
  if (!job) return std::nullopt;
  return record_of(*job);
}

void ManagedFibers::store(const FiberRecord& record, JobState state) {
  std::optional<Job> job = jobs().find(record.seq);
  HEARTH_ASSERT(job, "a record without a row is stored");
  job->status = to_string(record.status);
  job->dead = record.dead;
  job->started_at_ms = record.started_at_ms;
  job->ended_at_ms = record.completed_at_ms;
  job->attempts = record.attempts;
  job->failures = static_cast<int>(record.failures);
  job->next_at_ms = record.settled() ? now_ms() : record.next_at_ms;
  if (record.settled()) job->interruptions = job->fatal_attempts = job->tell_failures = 0;
  job->keep.reset();
  job->wait(now_ms());
  if (state == JobState::kClaimed) job->claim(now_ms());
  job->state = state;
  if (state == JobState::kSettled) job->due_at_ms.reset();
  jobs().update(*job);
  line().changed();
  fibers_.forget_moment();
}

// ---- start --------------------------------------------------------------------------------------

Result<std::optional<FiberRecord>> ManagedFibers::find_named(const ManagedRequest& request) {
  std::optional<FiberRecord> by_id;
  if (!request.id.empty()) by_id = find_record(request.id);
  if (request.key.empty()) return by_id;
  const auto keyed = jobs().first(kByKey, std::array{Param(request.key)});
  if (!keyed) return by_id;
  std::optional<FiberRecord> by_key = record_of(*keyed);
  if (by_id && by_id->id != by_key->id) {
    return bad_request("this id and this key name different fibers");
  }
  return by_key;
}

Result<ManagedFibers::Started> ManagedFibers::start(const ManagedRequest& request) {
  if (auto checked = check_request(request, settings_.max_json_bytes); checked.has_error()) {
    return checked.error();
  }
  if (!request.parent.empty() && !is_open(request.parent))
    return Error{Errc::kNotFound, "the fiber that this one would belong to is over"};
  auto named = find_named(request);
  if (named.has_error()) return named.error();
  std::optional<FiberRecord>& record = *named;
  if (!record) return begin(request, nullptr);

  const bool same =
      record->name == request.name &&
      same_json(record->input.value_or("null"), request.input.empty() ? "null" : request.input);
  const bool has_failed = record->settled() && record->status != FiberStatus::kCompleted;
  if ((record->settled() && request.policy == SettledKey::kReplace) ||
      (has_failed && request.policy == SettledKey::kReplaceFailed)) {
    return begin(request, &*record);
  }
  if (!same) {
    return Error{Errc::kConflict, "a fiber of this id or key has another name or input"};
  }
  // Without this check, a caller that uses only the key would start the fiber a second time. (A new
  // id with a known key is fine: the caller made it for this attempt.)
  if (!request.key.empty() && request.key != record->key)
    return Error{Errc::kConflict, "the fiber of this id has another key, or none"};
  if (record->settled() && request.policy == SettledKey::kReject) {
    return Error{Errc::kConflict, "a fiber of this id or key is settled already"};
  }
  if (request.take_up && !record->settled()) return take_up(std::move(*record));
  ManagedChange found = change_of(std::move(*record));
  return Started{.id = std::move(found.id), .record = std::move(found.record)};
}

// The caller has the code for the fiber, so no hook is offered it.
Result<ManagedFibers::Started> ManagedFibers::take_up(FiberRecord record) {
  const auto taken = fibers_.take_up(record.id);
  if (!taken) return taken.error();
  const auto begin = *taken;
  if (begin) {
    const bool was_pending = record.is_pending();
    record.status = FiberStatus::kRunning;
    record.next_at_ms = 0;
    jobs().run(
        "UPDATE cf_agents_jobs SET status = 'running', started_at = coalesce(started_at, ?2) "
        "WHERE seq = ?1",
        std::array{Param(record.seq), Param(now_ms())});
    parents_.insert(record.id);  // an earlier instance may have left values of its children
    if (!was_pending) note_turn(record.id);
  }
  ManagedChange found = change_of(std::move(record));
  Started started{.id = std::move(found.id), .record = std::move(found.record)};
  if (!begin) return started;
  started.fiber = begin->handle;
  started.was_there = true;
  started.was_offered = begin->was_offered;
  return started;
}

Result<void> ManagedFibers::make_room() {
  while (!count().below(settings_.max_records)) {
    if (!sweep()) return Error{Errc::kLimitExceeded, "this agent has too many fibers on record"};
  }
  return {};
}

Result<ManagedFibers::Started> ManagedFibers::begin(const ManagedRequest& request,
                                                    const FiberRecord* replaced) {
  if (!replaced) {
    if (auto room = make_room(); room.has_error()) return room.error();
  }
  Job job;
  job.id = request.id.empty() ? make_uuid(random()) : std::string(request.id);
  if (auto may = fibers_.may_start(request.name); may.has_error()) return may.error();
  // Only after the checks: a rejected request does not change the old record.
  if (replaced) erase_record(replaced->seq, replaced->id);
  job.name = request.name;
  job.key = none_if_empty(request.key);
  job.created_at_ms = now_ms();
  job.started_at_ms = job.created_at_ms;
  job.status = to_string(FiberStatus::kRunning);
  job.type = type_of(request.keeping, request.is_turn);
  job.parent = none_if_empty(request.parent);
  job.retry.max_attempts = static_cast<int>(request.max_retries);
  job.retry.base =
      std::chrono::milliseconds(request.retry_base_ms == 0 ? kRetryBaseMs : request.retry_base_ms);
  job.retry.cap =
      std::chrono::milliseconds(request.retry_max_ms == 0 ? kRetryCapMs : request.retry_max_ms);
  if (request.is_turn) pass_given_up_turns();
  job.lane = none_if_empty(request.lane);
  const bool is_parked = is_taken(job.lane);
  FiberHandle handle = 0;
  if (is_parked) {
    job.started_at_ms.reset();
    job.status = to_string(FiberStatus::kPending);
    fibers_.park(job);
  } else {
    handle = fibers_.start_managed(job);
  }
  if (!request.input.empty()) jobs().put(job.seq, JobPart::kInput, request.input);
  if (!request.metadata.empty()) jobs().put(job.seq, JobPart::kMetadata, request.metadata);
  if (request.resets_by_progress) jobs().put(job.seq, JobPart::kResets, "");
  count().added();
  // The caller gets a receipt: the fiber is accepted, and about to begin.
  FiberRecord record = record_of(job);
  record.status = FiberStatus::kPending;
  record.started_at_ms.reset();
  Started started{.fiber = handle, .id = record.id, .record = record_json(record)};
  started.is_parked = is_parked;
  if (is_parked) started.record.insert(started.record.size() - 1, R"(,"accepted":true)");
  return started;
}

bool ManagedFibers::is_taken(const std::optional<std::string>& lane) {
  return lane && jobs().first("WHERE lane = ? AND ended_at IS NULL LIMIT 1",
                              std::array{Param(std::string_view(*lane))});
}

// The first one that is still open has its turn.
void ManagedFibers::pass_lane(const std::optional<std::string>& lane) {
  if (!lane) return;
  jobs().run(
      "UPDATE cf_agents_jobs SET due_at = min(created_at, ?2), set_at = ?2 WHERE seq = (SELECT "
      "min(seq) FROM cf_agents_jobs WHERE lane = ?1 AND ended_at IS NULL) "
      "AND state = 0 AND due_at IS NULL",
      std::array{Param(std::string_view(*lane)), Param(now_ms())});
  fibers_.forget_moment();
}

Result<FiberHandle> ManagedFibers::resume(std::string_view id) {
  auto handle = fibers_.resume(id);
  if (handle.has_error()) return handle.error();
  std::optional<FiberRecord> record = find_record(id);
  HEARTH_ASSERT(record && !record->settled(), "what is being recovered is settled");
  record->status = FiberStatus::kRunning;
  if (!record->started_at_ms) record->started_at_ms = now_ms();
  store(*record, JobState::kClaimed);
  parents_.insert(record->id);  // an earlier instance may have left values of its children
  return handle;
}

// ---- the end ------------------------------------------------------------------------------------

Result<ManagedChange> ManagedFibers::settle(FiberHandle fiber, FiberStatus status,
                                            std::string_view body, bool is_final) {
  if (status != FiberStatus::kCompleted && status != FiberStatus::kError &&
      status != FiberStatus::kAborted) {
    return bad_request("work ends as completed, with an error, or aborted");
  }
  const std::string* id = fibers_.managed_id(fiber);
  std::optional<FiberRecord> record = id == nullptr ? std::nullopt : find_record(*id);
  if (!record || record->settled()) return Error{Errc::kNotFound, "the fiber has ended"};
  FiberOutcome outcome;
  outcome.status = status;
  if (status == FiberStatus::kCompleted) {
    if (auto checked = check_json("result", body, settings_.max_json_bytes); checked.has_error()) {
      return checked.error();
    }
    outcome.result = none_if_empty(body);
  } else {
    outcome.error = error_text(body);
  }
  if (status == FiberStatus::kError) {
    ++record->failures;
    if (!is_final && record->failures <= record->max_retries)
      return postpone(std::move(*record), body);
  }
  return settle_as(std::move(*record), std::move(outcome), false);
}

Result<ManagedChange> ManagedFibers::settle(FiberHandle fiber, std::string_view outcome_json) {
  const std::string* const id = fibers_.managed_id(fiber);
  std::optional<FiberRecord> record = id == nullptr ? std::nullopt : find_record(*id);
  if (!record || record->settled()) return Error{Errc::kNotFound, "the fiber has ended"};
  auto outcome = parse_outcome(outcome_json, settings_.max_json_bytes);
  if (outcome.has_error()) return outcome.error();
  if (outcome->status == FiberStatus::kInterrupted)
    return bad_request("work ends as completed, with an error, or aborted");
  if (outcome->status == FiberStatus::kError) ++record->failures;
  return settle_as(std::move(*record), std::move(*outcome), false);
}

Result<ManagedChange> ManagedFibers::wait_for_code(FiberHandle fiber) {
  const std::string* const id = fibers_.managed_id(fiber);
  std::optional<FiberRecord> record = id == nullptr ? std::nullopt : find_record(*id);
  if (!record || record->settled()) return Error{Errc::kNotFound, "the fiber has ended"};
  fibers_.unknown(record->id);
  return change_of(std::move(*record));
}

ManagedChange ManagedFibers::postpone(FiberRecord record, std::string_view error) {
  record.status = FiberStatus::kPending;
  record.error = error_text(error);
  record.next_at_ms = now_ms() + back_off(static_cast<int>(record.failures), record.retry_base,
                                          record.retry_cap, random())
                                     .count();
  store(record, JobState::kWaiting);
  jobs().put(record.seq, JobPart::kError, *record.error);
  fibers_.postpone(record.id, record.next_at_ms);
  return change_of(std::move(record));
}

ManagedChange ManagedFibers::settle_as(FiberRecord record, FiberOutcome outcome, bool dead) {
  if (outcome.status != FiberStatus::kAborted)
    return settle_alone(std::move(record), std::move(outcome), dead);
  const std::optional<std::string> reason = outcome.error;
  ManagedChange change = settle_alone(std::move(record), std::move(outcome), dead);
  abort_inner(change, reason);
  return change;
}

ManagedChange ManagedFibers::settle_alone(FiberRecord record, FiberOutcome outcome, bool dead) {
  if (!record.settled()) {
    if (const auto standing = fibers_.find(record.id)) record.attempts = standing->attempts;
    record.snapshot = jobs().document(record.seq, JobPart::kSnapshot);
    fibers_.erase(record.id);
  }
  has_settled_ = true;
  record.status = outcome.status;
  record.dead = dead;
  record.completed_at_ms = now_ms();
  record.next_at_ms = 0;
  record.result = std::move(outcome.result);
  record.error = std::move(outcome.error);
  record.reason = std::move(outcome.reason);
  jobs().put(record.seq, JobPart::kResult, record.result);
  jobs().put(record.seq, JobPart::kReason, record.reason);
  jobs().put(record.seq, JobPart::kError, record.error);
  if (outcome.snapshot) {
    record.snapshot = std::move(outcome.snapshot);
    jobs().put(record.seq, JobPart::kSnapshot, record.snapshot);
  }
  if (outcome.metadata) {
    record.metadata = std::move(outcome.metadata);
    jobs().put(record.seq, JobPart::kMetadata, record.metadata);
  }
  const bool goes = record.keeping == FiberKeeping::kBrief && !dead;
  parents_.erase(record.id);
  const bool is_needed = record.parent && is_open(*record.parent);
  if (goes && !is_needed) {
    erase_record(record.seq, record.id);
    pass_lane(record.lane);
    return change_of(std::move(record));
  }
  if (is_needed && record.parent)
    parents_.insert(*record.parent);  // it may have written a checkpoint while this one ran
  // A fiber that may be revived needs the values of its children.
  if (!dead && record.status != FiberStatus::kInterrupted) remove_children(record.id);
  store(record, goes ? JobState::kSettled : JobState::kUntold);
  pass_lane(record.lane);
  return change_of(std::move(record));
}

void ManagedFibers::erase_record(std::int64_t seq, const std::string& id) {
  jobs().erase(seq);
  remove_children(id);
  line().changed();
  count().removed(1);
}

Result<ManagedChange> ManagedFibers::cancel(std::string_view id, std::string_view key,
                                            std::string_view reason) {
  auto record = find_one(id, key);
  if (record.has_error()) return record.error();
  if (record->settled()) return Error{Errc::kNotFound, "this fiber is settled already"};
  FiberOutcome outcome;
  outcome.status = FiberStatus::kAborted;
  outcome.error = error_text(reason);
  return settle_as(std::move(*record), std::move(outcome), false);
}

Result<ManagedChange> ManagedFibers::resolve(std::string_view id, std::string_view outcome_json) {
  auto record = find_one(id, "");
  if (record.has_error()) return record.error();
  if (!record->settled() || (record->status != FiberStatus::kInterrupted && !record->dead)) {
    return Error{Errc::kNotFound, "this fiber is neither interrupted nor dead"};
  }
  if (outcome_json.empty()) return bad_request("an outcome is needed to resolve a fiber");
  auto outcome = parse_outcome(outcome_json, settings_.max_json_bytes);
  if (outcome.has_error()) return outcome.error();
  return settle_as(std::move(*record), std::move(*outcome), false);
}

Result<void> ManagedFibers::retry(std::string_view id) {
  auto record = find_one(id, "");
  if (record.has_error()) return record.error();
  if (!record->settled() || (record->status != FiberStatus::kInterrupted && !record->dead)) {
    return Error{Errc::kNotFound, "this fiber is neither interrupted nor dead"};
  }
  record->status = FiberStatus::kRecovering;
  record->dead = false;
  record->attempts = 0;
  record->completed_at_ms.reset();
  for (const JobPart part :
       {JobPart::kResult, JobPart::kError, JobPart::kLastError, JobPart::kPassed, JobPart::kReason})
    jobs().put(record->seq, part, std::nullopt);
  jobs().run(
      "UPDATE cf_agents_jobs SET claims = 0, interruptions = 0, fatal_attempts = 0, "
      "has_failed = 0 WHERE seq = ?",
      std::array{Param(record->seq)});
  const bool is_parked = is_taken(record->lane);
  store(*record, JobState::kWaiting);
  if (is_parked) {
    jobs().run("UPDATE cf_agents_jobs SET due_at = NULL WHERE seq = ?",
               std::array{Param(record->seq)});
  }
  return {};
}

// ---- recovery -----------------------------------------------------------------------------------

bool ManagedFibers::is_planned_alone(std::string_view id) {
  const auto record = find_record(id);
  return record && !record->is_pending();
}

ManagedFibers::Members ManagedFibers::begin_recovery(std::string_view id) {
  std::optional<FiberRecord> record = find_record(id);
  HEARTH_ASSERT(record, "a fiber without a record is recovered");
  const bool is_pending = record->is_pending();
  if (!is_pending) note_turn(id);
  const std::string reason = !is_pending ? "interrupted" : record->failures > 0 ? "retry" : "lane";
  return {R"("record":)" + change_of(std::move(*record)).record + R"(,"reason":")" + reason + "\"",
          is_pending};
}

// A counted recovery of the fiber begins.
void ManagedFibers::note_turn(std::string_view id) {
  const auto job = jobs().find(JobKind::kManaged, id);
  if (job && job->is_turn()) turn_news_.push_back({job->id, std::max(job->claims, 1)});
}

void ManagedFibers::note_given_up(const FiberRecord& record, std::string_view why) {
  turn_news_.push_back({record.id, 0, std::string(why)});
  given_up_turns_.reset();
  const auto later = jobs().first(
      "INDEXED BY cf_agents_jobs_open WHERE kind = 2 AND ended_at IS NULL AND seq > ? AND "
      "type IN ('turn', 'kept turn')",
      std::array{Param(record.seq)});
  if (later) jobs().put(record.seq, JobPart::kPassed, "");
}

Result<ManagedChange> ManagedFibers::recovered(std::string_view id, std::string_view outcome_json) {
  const auto standing = fibers_.find(id);
  std::optional<FiberRecord> record = find_record(id);
  if (!record || record->settled() || !standing || !standing->recovering) {
    return Error{Errc::kNotFound, "the fiber was resumed or settled in the meantime"};
  }
  auto outcome = parse_outcome(outcome_json, settings_.max_json_bytes);
  if (outcome.has_error()) return outcome.error();
  return settle_as(std::move(*record), std::move(*outcome), false);
}

bool ManagedFibers::unknown(std::string_view id) {
  const auto standing = fibers_.find(id);
  if (!standing || !standing->recovering) return false;
  fibers_.unknown(id);
  return true;
}

ManagedChange ManagedFibers::died(std::string_view id, std::string_view error) {
  std::optional<FiberRecord> record = find_record(id);
  HEARTH_ASSERT(record && !record->settled(), "a fiber without an open record has died");
  if (record->is_turn) note_given_up(*record, error);
  FiberOutcome outcome;
  outcome.status = FiberStatus::kError;
  outcome.error = error_text(error);
  return settle_as(std::move(*record), std::move(outcome), true);
}

}  // namespace hearth::durable
