// How the records of managed fibers are looked at, removed, kept, and told to the agent's code.
#include "base/assert.hpp"
#include "durable/back_off.hpp"
#include "durable/managed_fibers.hpp"

#include <algorithm>
#include <utility>

namespace hearth::durable {
namespace {

constexpr std::chrono::milliseconds kTellBase{1'000};
constexpr std::chrono::milliseconds kTellCap{300'000};
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

// ---- looking ----------------------------------------------------------------------------------------------

void ManagedFibers::complete(FiberRecord& record) {
  if (record.settled()) return;
  const bool failed = record.is_retry();
  record.status = FiberStatus::kRecovering;
  record.next_at_ms = 0;
  const auto standing = fibers_.find(record.id);
  if (!standing) return;
  record.attempts = standing->attempts;
  record.snapshot = fibers_.snapshot(record.id);
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
  if (id.empty() == key.empty())
    return bad_query("a managed fiber is named by its id or by its key");
  auto record = id.empty() ? table_.find_by_key(key) : table_.find(id);
  if (!record) return Error{Errc::kNotFound, "no managed fiber has this id or key"};
  return std::move(*record);
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
  RecordQuery query;
  query.open = (statuses & kOpenBits) != 0;
  query.settled = statuses & ~kOpenBits;
  query.name = filter.name;
  query.before_ms = filter.before_ms;
  query.dead = filter.dead;
  if (!filter.after.empty()) {
    const auto seq = table_.seq_of(filter.after);
    if (!seq) return Error{Errc::kNotFound, "no managed fiber has the id `after`"};
    query.after = *seq;
  }
  std::string page = "[";
  std::size_t count = 0;
  table_.walk(query, [&](FiberRecord& record) {
    complete(record);
    if ((bit(record.status) & statuses) == 0) return true;
    if (count++ > 0) page += ',';
    page += record_json(record);
    return count < limit && page.size() < kMaxRecordPageBytes;
  });
  return page + "]";
}

Result<std::uint64_t> ManagedFibers::remove(const ManagedFilter& filter) {
  if (filter.limit > kMostRemoved) return bad_query("at most 500 records are removed at once");
  RecordQuery query;
  query.settled = filter.statuses;
  query.name = filter.name;
  query.before_ms = filter.before_ms;
  query.dead = filter.dead;
  const bool by_default = filter.statuses == 0;
  if (by_default) {
    query.settled =
        bit(FiberStatus::kCompleted) | bit(FiberStatus::kError) | bit(FiberStatus::kAborted);
    query.spare_dead = !filter.dead;  // what waits for somebody's decision goes only by name
  }
  const auto ids = table_.settled_ids(query, filter.limit == 0 ? kRemovedByDefault : filter.limit);
  for (const std::string& id : ids) erase(id);
  return ids.size();
}

void ManagedFibers::erase(const std::string& id) {
  forget(id);
  table_.erase(id);
  if (size_) --*size_;
}

// ---- telling ----------------------------------------------------------------------------------------------

void ManagedFibers::load_untold() {
  // No wait that we would set is longer: one that is was written by a clock that has been set back since.
  const std::int64_t latest = now_ms() + (kTellCap + kTellCap / 4).count();
  for (UntoldRow& each : table_.untold()) {
    const DueTime due(clock_, std::min(each.tell_at_ms, latest));
    untold_.push_back(Untold{std::move(each.id), due, each.failures, each.interruptions});
  }
}

void ManagedFibers::forget(const std::string& id) {
  std::erase_if(untold_, [&](const Untold& each) { return each.id == id; });
}

std::optional<ManagedChange> ManagedFibers::next_untold() {
  const Now now(clock_);
  while (true) {
    const auto next =
        std::ranges::find_if(untold_, [&](const Untold& each) { return is_due(each, now); });
    if (next == untold_.end()) return std::nullopt;
    Untold claimed = std::move(*next);
    untold_.erase(next);
    if (claimed.interruptions >= settings_.max_tell_interruptions) {
      table_.note_never_told(claimed.id);
      never_told_.push_back(std::move(claimed.id));
      continue;
    }
    const auto record = table_.find(claimed.id);
    HEARTH_ASSERT(record && record->settled(), "a record that is to be told is not settled");
    const int interruptions = claimed.interruptions + 1;  // until its end is known
    // The first may be anybody's fault: it is told again at once.
    const std::int64_t wait =
        interruptions > 1 ? back_off(interruptions - 1, kTellBase, kTellCap, random_).count() : 0;
    table_.note_telling(claimed.id, interruptions, now_ms() + wait);
    telling_.emplace(std::move(claimed.id), Telling{claimed.failures, interruptions});
    return change_of(*record);
  }
}

void ManagedFibers::told(std::string_view id, bool heard) {
  const auto telling = telling_.find(id);
  if (telling == telling_.end()) return;
  const int failures = telling->second.failures + 1;
  telling_.erase(telling);
  if (is_untold(id)) return;  // settled once more in the meantime: that is another thing to tell
  if (heard) {
    table_.note_told(id);
    return;
  }
  const std::int64_t tell_at_ms =
      now_ms() + back_off(failures, kTellBase, kTellCap, random_).count();
  // Not there any more: it was removed or retried in the meantime.
  if (table_.note_not_told(id, failures, tell_at_ms))
    untold_.push_back(Untold{std::string(id), DueTime(clock_, tell_at_ms), failures});
}

void ManagedFibers::interrupt_on_purpose() {
  for (const auto& [id, telling] : telling_) {
    if (!is_untold(id)) table_.note_telling(id, telling.interruptions - 1, now_ms());
  }
}

bool ManagedFibers::is_untold(std::string_view id) const {
  return std::ranges::any_of(untold_, [id](const Untold& each) { return each.id == id; });
}

bool ManagedFibers::sweep() {
  const std::int64_t now = now_ms();
  const std::size_t erased =
      table_.erase_expired(now - settings_.keep_completed.count(),
                           now - settings_.keep_failed.count(), kRecordsSweptAtOnce);
  if (size_) *size_ -= std::min(*size_, erased);
  return erased > 0;
}

bool ManagedFibers::is_due(const Untold& each, const Now& now) const {
  return each.due.reached(now) && !telling_.contains(each.id);
}

bool ManagedFibers::due() const {
  const Now now(clock_);
  return std::ranges::any_of(untold_, [&](const Untold& each) { return is_due(each, now); });
}

Wake ManagedFibers::wake() const {
  Wake wake;
  wake.working = !telling_.empty();
  const Now now(clock_);
  for (const Untold& each : untold_) {
    if (each.due.reached(now)) {
      wake.working = true;  // this instance tells it at once
    } else {
      wake.at_ms = earliest(wake.at_ms, each.due.wall_ms(now));
    }
  }
  return wake;
}

}  // namespace hearth::durable
