#include "durable/managed_fibers.hpp"

#include "base/assert.hpp"
#include "base/utf8.hpp"
#include "durable/back_off.hpp"
#include "json/json_scanner.hpp"

#include <algorithm>
#include <unordered_set>
#include <utility>

namespace hearth::durable {
namespace {

constexpr std::size_t kMaxLabelBytes = 256;  // of a name, an id and a key
constexpr std::size_t kMaxRecordErrorBytes = 4096;
constexpr std::uint32_t kMostRetries = 1'000;
constexpr std::uint64_t kRetryBaseMs = 1'000;
constexpr std::uint64_t kRetryCapMs = 300'000;
constexpr std::uint64_t kLongestRetryMs = std::uint64_t{24} * 3600 * 1000;

Error bad_request(std::string why) {
  return Error{Errc::kInvalidArgument, std::move(why)};
}

// An id or a key; empty is none.
Result<void> check_label(std::string_view what, std::string_view label) {
  if (label.empty()) return {};
  if (label.find_first_not_of(" \t\r\n\f\v") == std::string_view::npos) {
    return bad_request("a managed fiber's " + std::string(what) + " may not be blank");
  }
  if (label.size() > kMaxLabelBytes || !is_valid_utf8(label) ||
      label.find('\0') != std::string_view::npos) {
    return bad_request("a managed fiber's " + std::string(what) + " is 1 to 256 bytes of UTF-8");
  }
  return {};
}

Result<void> check_json(std::string_view what, std::string_view json, std::size_t max_bytes) {
  if (json.size() > max_bytes) {
    return Error{Errc::kLimitExceeded, "a managed fiber's " + std::string(what) +
                                           " is larger than " + std::to_string(max_bytes) +
                                           " bytes"};
  }
  if (!json.empty() && !is_json(json)) {
    return bad_request("a managed fiber's " + std::string(what) + " must be JSON");
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
  if (request.policy > SettledKey::kReplace) {
    return bad_request("there is no such policy for a settled fiber");
  }
  if (request.name.empty()) return bad_request("a managed fiber has a name");
  for (const auto& checked :
       {check_label("name", request.name), check_label("id", request.id),
        check_label("key", request.key), check_json("input", request.input, max_json_bytes),
        check_json("metadata", request.metadata, max_json_bytes), check_retry(request)}) {
    if (checked.has_error()) return checked.error();
  }
  return {};
}

std::optional<std::string> none_if_empty(std::string_view text) {
  if (text.empty()) return std::nullopt;
  return std::string(text);
}

std::string error_text(std::string_view text) {
  return std::string(text.substr(0, kMaxRecordErrorBytes));
}

}  // namespace

ManagedFibers::ManagedFibers(storage::AgentDatabase& database, Fibers& fibers, const Clock& clock,
                             Random& random, ManagedSettings settings)
    : table_(database), fibers_(fibers), clock_(clock), random_(random), settings_(settings) {}

// ---- what an earlier instance left ------------------------------------------------------------------------

void ManagedFibers::load() {
  if (!table_.exists()) return;
  table_.upgrade();
  load_untold();
  const std::vector<std::string> waiting = fibers_.waiting_ids();
  const std::vector<std::string> open = table_.open_ids();
  const std::unordered_set<std::string_view> is_open(open.begin(), open.end());
  for (const std::string& id : waiting) {
    if (!is_open.contains(id) && table_.seq_of(id)) fibers_.erase(id);
  }
  for (const std::string& id : open) repair_open(id);
}

void ManagedFibers::repair_open(const std::string& id) {
  std::optional<FiberRecord> record = table_.find(id);
  const auto standing = fibers_.find(id);
  if (!record) return;
  if (!standing) {
    FiberRow row;
    row.id = id;
    row.name = record->name;
    row.snapshot = record->snapshot;
    row.created_at_ms = record->created_at_ms;
    fibers_.restore(row);
  } else if (standing->dead) {
    (void)died(id, fibers_.last_error(id).value_or(""));
    return;
  }
  std::int64_t next_at_ms = 0;
  if (record->is_retry()) {
    const auto longest = record->retry_cap + record->retry_cap / 4;
    next_at_ms = std::min<std::int64_t>(record->next_at_ms, now_ms() + longest.count());
  }
  fibers_.mark_managed(id, next_at_ms);
}

// ---- start ------------------------------------------------------------------------------------------------

Result<std::optional<FiberRecord>> ManagedFibers::find_named(const ManagedRequest& request) {
  std::optional<FiberRecord> by_id;
  if (!request.id.empty()) by_id = table_.find(request.id);
  if (request.key.empty()) return by_id;
  std::optional<FiberRecord> by_key = table_.find_by_key(request.key);
  if (!by_key) return by_id;
  if (by_id && by_id->id != by_key->id) {
    return bad_request("this id and this key name different managed fibers");
  }
  return by_key;
}

Result<ManagedFibers::Started> ManagedFibers::start(const ManagedRequest& request) {
  if (auto checked = check_request(request, settings_.max_json_bytes); checked.has_error()) {
    return checked.error();
  }
  auto named = find_named(request);
  if (named.has_error()) return named.error();
  std::optional<FiberRecord>& record = *named;
  if (!record) return begin(request, nullptr);

  const bool same =
      record->name == request.name &&
      same_json(record->input.value_or("null"), request.input.empty() ? "null" : request.input);
  if (record->settled() && request.policy == SettledKey::kReplace) {
    return begin(request, &*record);
  }
  if (!same) {
    return Error{Errc::kConflict, "a managed fiber of this id or key has another name or input"};
  }
  // Else whoever asks for the key alone would start it a second time. (A new id with a known key is one that was made for this try.)
  if (!request.key.empty() && request.key != record->key)
    return Error{Errc::kConflict, "the managed fiber of this id has another key, or none"};
  if (record->settled() && request.policy == SettledKey::kReject) {
    return Error{Errc::kConflict, "a managed fiber of this id or key is settled already"};
  }
  ManagedChange found = change_of(std::move(*record));
  return Started{0, std::move(found.id), std::move(found.record)};
}

Result<void> ManagedFibers::make_room() {
  if (!size_) size_ = table_.size_bound();
  if (*size_ < settings_.max_records) return {};
  if (!size_is_exact_) {
    size_ = table_.size();
    size_is_exact_ = true;
  }
  while (*size_ >= settings_.max_records && sweep()) continue;
  if (*size_ < settings_.max_records) return {};
  return Error{Errc::kLimitExceeded, "this agent has too many managed fibers on record"};
}

Result<ManagedFibers::Started> ManagedFibers::begin(const ManagedRequest& request,
                                                    const FiberRecord* replaced) {
  if (!replaced) {
    if (auto room = make_room(); room.has_error()) return room.error();
  }
  FiberRecord record;
  record.id = request.id.empty() ? make_uuid(random_) : std::string(request.id);
  const auto handle = fibers_.start_managed(request.name, record.id);
  if (handle.has_error()) return handle.error();
  // Only now: what is refused leaves the old record alone.
  if (replaced) erase(replaced->id);
  record.key = none_if_empty(request.key);
  record.name = request.name;
  record.created_at_ms = now_ms();
  record.started_at_ms = record.created_at_ms;
  record.max_retries = request.max_retries;
  record.retry_base =
      std::chrono::milliseconds(request.retry_base_ms == 0 ? kRetryBaseMs : request.retry_base_ms);
  record.retry_cap =
      std::chrono::milliseconds(request.retry_max_ms == 0 ? kRetryCapMs : request.retry_max_ms);
  record.input = none_if_empty(request.input);
  record.metadata = none_if_empty(request.metadata);
  table_.insert(record);
  if (size_) ++*size_;
  // What the caller gets is the receipt: accepted, and about to begin.
  record.status = FiberStatus::kPending;
  record.started_at_ms.reset();
  return Started{*handle, record.id, record_json(record)};
}

Result<FiberHandle> ManagedFibers::resume(std::string_view id) {
  std::optional<FiberRecord> record = table_.find(id);
  if (!record || record->settled())
    return Error{Errc::kNotFound, "no managed fiber of this id is being recovered"};
  auto handle = fibers_.resume(id);
  if (handle.has_error()) return handle.error();
  record->status = FiberStatus::kRunning;
  record->next_at_ms = 0;
  if (!record->started_at_ms) record->started_at_ms = now_ms();
  table_.update(*record, now_ms());
  return handle;
}

// ---- the end ----------------------------------------------------------------------------------------------

Result<ManagedChange> ManagedFibers::settle(FiberHandle fiber, FiberStatus status,
                                            std::string_view body) {
  if (status != FiberStatus::kCompleted && status != FiberStatus::kError &&
      status != FiberStatus::kAborted) {
    return bad_request("work ends as completed, with an error, or aborted");
  }
  const std::string* id = fibers_.managed_id(fiber);
  std::optional<FiberRecord> record = id == nullptr ? std::nullopt : table_.find(*id);
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
    if (record->failures <= record->max_retries) return postpone(std::move(*record), body);
  }
  return settle_as(std::move(*record), std::move(outcome), false);
}

ManagedChange ManagedFibers::postpone(FiberRecord record, std::string_view error) {
  record.status = FiberStatus::kPending;
  record.error = error_text(error);
  record.next_at_ms = now_ms() + back_off(static_cast<int>(record.failures), record.retry_base,
                                          record.retry_cap, random_)
                                     .count();
  table_.update(record, now_ms());
  fibers_.postpone(record.id, record.next_at_ms);
  return change_of(std::move(record));
}

ManagedChange ManagedFibers::settle_as(FiberRecord record, FiberOutcome outcome, bool dead) {
  if (const auto standing = fibers_.find(record.id); standing && !record.settled()) {
    record.attempts = standing->attempts;
    record.snapshot = fibers_.snapshot(record.id);  // it moves here: the row goes
    fibers_.erase(record.id);
  }
  record.status = outcome.status;
  record.dead = dead;
  record.completed_at_ms = now_ms();
  record.next_at_ms = 0;
  record.result = std::move(outcome.result);
  record.error = std::move(outcome.error);
  if (outcome.snapshot) record.snapshot = std::move(outcome.snapshot);
  if (outcome.metadata) record.metadata = std::move(outcome.metadata);
  table_.update(record, now_ms());
  forget(record.id);
  untold_.push_back(Untold{.id = record.id, .due = DueTime()});
  return change_of(std::move(record));
}

Result<ManagedChange> ManagedFibers::cancel(std::string_view id, std::string_view key,
                                            std::string_view reason) {
  auto record = find_one(id, key);
  if (record.has_error()) return record.error();
  if (record->settled()) return Error{Errc::kNotFound, "this managed fiber is settled already"};
  FiberOutcome outcome;
  outcome.status = FiberStatus::kAborted;
  outcome.error = error_text(reason);
  return settle_as(std::move(*record), std::move(outcome), false);
}

Result<ManagedChange> ManagedFibers::resolve(std::string_view id, std::string_view outcome_json) {
  auto record = find_one(id, "");
  if (record.has_error()) return record.error();
  if (!record->settled() || (record->status != FiberStatus::kInterrupted && !record->dead)) {
    return Error{Errc::kNotFound, "this managed fiber is neither interrupted nor dead"};
  }
  if (outcome_json.empty()) return bad_request("an outcome is needed to resolve a managed fiber");
  auto outcome = parse_outcome(outcome_json, settings_.max_json_bytes);
  if (outcome.has_error()) return outcome.error();
  return settle_as(std::move(*record), std::move(*outcome), false);
}

Result<void> ManagedFibers::retry(std::string_view id) {
  auto record = find_one(id, "");
  if (record.has_error()) return record.error();
  if (!record->settled() || (record->status != FiberStatus::kInterrupted && !record->dead)) {
    return Error{Errc::kNotFound, "this managed fiber is neither interrupted nor dead"};
  }
  if (fibers_.find(record->id)) return Error{Errc::kConflict, "a fiber has this id"};
  FiberRow row;
  row.id = record->id;
  row.name = record->name;
  row.snapshot = std::exchange(record->snapshot, std::nullopt);
  row.created_at_ms = record->created_at_ms;
  fibers_.restore(row);
  record->status = FiberStatus::kRecovering;
  record->dead = false;
  record->attempts = 0;
  record->completed_at_ms.reset();
  record->result.reset();
  record->error.reset();
  table_.update(*record, now_ms());
  forget(record->id);
  return {};
}

// ---- recovery ---------------------------------------------------------------------------------------------

bool ManagedFibers::is_managed(std::string_view id) {
  if (const auto standing = fibers_.find(id); standing && !standing->dead) return standing->managed;
  return table_.seq_of(id).has_value();
}

std::string ManagedFibers::begin_recovery(std::string_view id) {
  std::optional<FiberRecord> record = table_.find(id);
  HEARTH_ASSERT(record, "a fiber without a record is recovered as a managed one");
  const std::string_view reason = record->is_retry() ? "retry" : "interrupted";
  return R"("managed":)" + change_of(std::move(*record)).record + R"(,"reason":")" +
         std::string(reason) + "\"";
}

Result<ManagedChange> ManagedFibers::recovered(std::string_view id, std::string_view outcome_json) {
  const auto standing = fibers_.find(id);
  std::optional<FiberRecord> record = table_.find(id);
  if (!record || record->settled() || !standing || !standing->recovering) {
    fibers_.recovered(id);
    return Error{Errc::kNotFound, "the fiber was resumed or settled in the meantime"};
  }
  auto outcome = parse_outcome(outcome_json, settings_.max_json_bytes);
  if (outcome.has_error()) return outcome.error();
  fibers_.recovered(id);
  return settle_as(std::move(*record), std::move(*outcome), false);
}

ManagedChange ManagedFibers::died(std::string_view id, std::string_view error) {
  std::optional<FiberRecord> record = table_.find(id);
  HEARTH_ASSERT(record && !record->settled(),
                "a fiber without an open record has died as a managed one");
  FiberOutcome outcome;
  outcome.status = FiberStatus::kError;
  outcome.error = error_text(error);
  return settle_as(std::move(*record), std::move(outcome), true);
}

}  // namespace hearth::durable
