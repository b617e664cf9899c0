#include "durable/fibers.hpp"

#include "base/assert.hpp"
#include "base/utf8.hpp"
#include "durable/back_off.hpp"
#include "json/json_text.hpp"

#include <algorithm>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace hearth::durable {
namespace {

constexpr std::size_t kMaxFiberNameBytes = 256;
constexpr std::size_t kMaxFiberErrorBytes = 4096;
constexpr std::size_t kMostDeadListed = 100;
constexpr std::size_t kDeadListedByDefault = 50;
constexpr std::size_t kMaxDeadPageBytes = std::size_t{4} << 20;
constexpr std::size_t kDeadSweptAtOnce = 100;  // a millisecond's work

// A recovery that is not the fault of the work is not counted.
void give_back_recovery(FiberRow& row) {
  row.recoveries = std::max(0, row.recoveries - 1);
}

}  // namespace

Fibers::Fibers(storage::AgentDatabase& database, const Clock& clock, Random& random,
               FiberSettings settings)
    : table_(database), clock_(clock), random_(random), settings_(settings) {}

void Fibers::load() {
  table_.upgrade(now_ms());
  may_have_dead_ = table_.has_dead();
  // No wait that we would set is longer: one that is was written by a clock that has been set back since.
  const std::int64_t latest = now_ms() + (settings_.retry_cap + settings_.retry_cap / 4).count();
  for (FiberRow& row : table_.load()) {
    left_over_.push_back(LeftOver{row.id, row.name, !row.has_failed});
    const std::int64_t next_at_ms = std::min(row.next_at_ms, latest);
    wait_until(waiting_.emplace_back(Waiting{std::move(row)}), next_at_ms);
  }
}

void Fibers::wait_until(Waiting& each, std::int64_t next_at_ms) const {
  each.row.next_at_ms = next_at_ms;
  each.due = DueTime(clock_, next_at_ms);
}

std::vector<Fibers::Waiting>::iterator Fibers::find_waiting(std::string_view id) {
  return std::ranges::find(waiting_, id,
                           [](const Waiting& each) -> std::string_view { return each.row.id; });
}

std::map<FiberHandle, Fibers::Running>::iterator Fibers::find_running(std::string_view id) {
  return std::ranges::find(running_, id,
                           [](const auto& each) -> std::string_view { return each.second.row.id; });
}

void Fibers::add_waiting(Waiting waiting) {
  const auto order = [](const Waiting& each) {
    return std::tuple(each.rank, each.row.created_at_ms, std::string_view(each.row.id));
  };
  waiting_.insert(std::ranges::upper_bound(waiting_, order(waiting), {}, order),
                  std::move(waiting));
}

FiberHandle Fibers::add_running(FiberRow row, bool managed) {
  row.snapshot.reset();  // it is on disk, and may be large
  const FiberHandle handle = ++last_handle_;
  running_.emplace(handle, Running{std::move(row), managed});
  return handle;
}

// ---- work -------------------------------------------------------------------------------------------------

Result<void> Fibers::check_start(std::string_view name) const {
  if (name.empty() || name.size() > kMaxFiberNameBytes || !is_valid_utf8(name)) {
    return Error{Errc::kInvalidArgument, "a fiber's name is 1 to 256 bytes of UTF-8"};
  }
  if (running_.size() >= settings_.max_running) {
    return Error{Errc::kLimitExceeded, "too many fibers run in this agent"};
  }
  return {};
}

Result<Fibers::Started> Fibers::start(std::string_view name, std::string_view replaces) {
  if (auto checked = check_start(name); checked.has_error()) return checked.error();
  FiberRow row;
  row.id = make_uuid(random_);
  row.name = name;
  row.created_at_ms = now_ms();
  if (!replaces.empty()) {
    const auto old = find_waiting(replaces);
    if (old == waiting_.end() || !old->recovering) {
      return Error{Errc::kNotFound, "no fiber of this id is being recovered"};
    }
    if (old->managed) {
      return Error{Errc::kInvalidArgument, "a managed fiber is resumed, not replaced"};
    }
    row.snapshot = table_.snapshot(replaces);
    // A continuation that dies before its first checkpoint has made no progress: its attempts go on counting.
    row.attempts = old->row.attempts;
    row.recoveries = old->row.recoveries;
    row.next_at_ms = old->row.next_at_ms;
    table_.erase(replaces);
    table_.insert(row);
    waiting_.erase(old);
  } else {
    table_.insert(row);
  }
  std::string id = row.id;
  return Started{add_running(std::move(row), false), std::move(id)};
}

Result<void> Fibers::stash(FiberHandle fiber, std::string_view json) {
  const auto found = running_.find(fiber);
  if (found == running_.end()) return Error{Errc::kNotFound, "the fiber has ended"};
  if (json.size() > settings_.max_snapshot_bytes) {
    return Error{Errc::kLimitExceeded, "the checkpoint is larger than " +
                                           std::to_string(settings_.max_snapshot_bytes) + " bytes"};
  }
  FiberRow& row = found->second.row;
  // The checkpoint that it was recovered from is no progress: a fiber that dies right behind it would be tried for ever.
  if (row.attempts > 0 && table_.snapshot(row.id) == json) return {};
  table_.stash(row.id, json);
  row.attempts = 0;
  return {};
}

Result<std::string> Fibers::finish(FiberHandle fiber) {
  const auto found = running_.find(fiber);
  if (found == running_.end()) return Error{Errc::kNotFound, "the fiber has ended"};
  if (found->second.managed) {
    return Error{Errc::kInvalidArgument, "a managed fiber is settled, not finished"};
  }
  std::string id = std::move(found->second.row.id);
  table_.erase(id);
  running_.erase(found);
  return id;
}

void Fibers::interrupt_on_purpose() {
  const auto give_back = [this](FiberRow& row) {
    if (row.attempts == 0 && row.recoveries == 0) return;
    row.attempts = std::max(0, row.attempts - 1);
    give_back_recovery(row);
    row.next_at_ms = 0;
    table_.note_attempt(row);
  };
  for (auto& [handle, fiber] : running_) give_back(fiber.row);
  for (Waiting& each : waiting_) {
    if (each.recovering) give_back(each.row);
  }
}

// ---- recovery ---------------------------------------------------------------------------------------------

void Fibers::forget_dead() {
  if (std::erase_if(waiting_, [](const Waiting& each) { return each.row.dead; }) > 0)
    may_have_dead_ = true;
}

std::string_view Fibers::why_given_up(const FiberRow& row) const {
  if (row.attempts >= settings_.max_attempts) return "interrupted again and again without progress";
  if (settings_.max_recoveries > 0 && row.recoveries >= settings_.max_recoveries)
    return "recovered as often as fibers.max_recoveries allows, and interrupted once more";
  return {};
}

std::optional<Interrupted> Fibers::begin_recovery() {
  const Now now(clock_);
  std::optional<Interrupted> found;
  for (Waiting& each : waiting_) {
    FiberRow& row = each.row;
    if (!is_due(each, now)) continue;
    if (const std::string_view why = why_given_up(row); !why.empty()) {
      row.dead = true;
      table_.note_failure(row.id, why, now_ms(), true);
      passed_over_.push_back({row.id, why});
      continue;
    }
    each.recovering = true;
    in_hook_.insert(row.id);
    ++row.attempts;
    ++row.recoveries;
    // If the hook takes the process with it, the next try waits like after any other failure.
    wait_until(
        each,
        now_ms() +
            back_off(row.attempts, settings_.retry_base, settings_.retry_cap, random_).count());
    table_.note_attempt(row);
    found = Interrupted{row.id, row.name, table_.snapshot(row.id), row.created_at_ms, row.attempts};
    break;
  }
  forget_dead();
  return found;
}

std::vector<Interrupted> Fibers::due_list() const {
  const Now now(clock_);
  std::vector<Interrupted> due;
  for (const Waiting& each : waiting_) {
    const FiberRow& row = each.row;
    if (!is_due(each, now) || !why_given_up(row).empty()) continue;
    due.push_back({row.id, row.name, std::nullopt, row.created_at_ms, row.attempts + 1});
  }
  return due;
}

void Fibers::plan(std::span<const std::string> ids) {
  std::unordered_map<std::string_view, std::size_t> ranks;
  for (const std::string& id : ids) ranks.emplace(id, ranks.size());
  for (Waiting& each : waiting_) {
    const auto rank = ranks.find(each.row.id);
    each.rank = rank == ranks.end() ? kUnplanned : rank->second;
  }
  std::ranges::sort(waiting_, {}, [](const Waiting& each) {
    return std::tuple(each.rank, each.row.created_at_ms, std::string_view(each.row.id));
  });
}

void Fibers::recovered(std::string_view id) {
  if (const auto hook = in_hook_.find(id); hook != in_hook_.end()) in_hook_.erase(hook);
  const auto found = find_waiting(id);
  // Replaced by its continuation, or it runs again, or has ended and waits for the next try.
  if (found == waiting_.end() || !found->recovering || found->managed) return;
  table_.erase(id);
  waiting_.erase(found);
}

Fibers::Failure Fibers::failed(std::string_view id, std::string_view error) {
  if (const auto hook = in_hook_.find(id); hook != in_hook_.end()) in_hook_.erase(hook);
  const auto found = find_waiting(id);
  // It goes on in a continuation, which speaks for itself.
  if (found == waiting_.end() || !found->recovering) return {};
  FiberRow& row = found->row;
  found->recovering = false;
  row.dead = row.attempts >= settings_.max_attempts;
  wait_until(
      *found,
      now_ms() +
          back_off(row.attempts, settings_.retry_base, settings_.retry_cap, random_).count());
  table_.note_failure(id, error.substr(0, kMaxFiberErrorBytes),
                      row.dead ? now_ms() : row.next_at_ms, row.dead);
  const Failure failure{row.dead, row.next_at_ms};
  forget_dead();
  return failure;
}

Result<void> Fibers::retry(std::string_view id) {
  std::optional<FiberRow> row = table_.find_dead(id);
  if (!row) return Error{Errc::kNotFound, "no dead fiber has this id"};
  table_.revive(id);
  row->dead = false;
  row->attempts = 0;
  row->recoveries = 0;
  Waiting waiting{.row = std::move(*row)};
  wait_until(waiting, 0);
  add_waiting(std::move(waiting));
  return {};
}

Result<std::string> Fibers::list_dead(std::string_view after, std::size_t limit) {
  if (limit > kMostDeadListed)
    return Error{Errc::kInvalidArgument, "a page has at most 100 records"};
  if (limit == 0) limit = kDeadListedByDefault;
  std::optional<FiberRow> last;
  if (!after.empty()) {
    last = table_.find_dead(after);
    if (!last) return Error{Errc::kNotFound, "no dead fiber has the id `after`"};
  }
  std::string page = "[";
  for (const FiberRow& row : table_.dead_after(last, limit)) {
    if (page.size() >= kMaxDeadPageBytes) break;
    if (page.size() > 1) page += ',';
    page += dead_json(row);
  }
  return page + "]";
}

std::vector<std::string> Fibers::sweep() {
  if (!may_have_dead_) return {};
  std::vector<std::string> ids =
      table_.dead_since(now_ms() - settings_.keep_dead.count(), kDeadSweptAtOnce);
  for (const std::string& id : ids) table_.erase(id);
  if (!ids.empty()) may_have_dead_ = table_.has_dead();
  return ids;
}

std::string Fibers::dead_json(const FiberRow& row) {
  std::string json = R"({"id":)";
  append_json_string(json, row.id);
  json += R"(,"name":)";
  append_json_string(json, row.name);
  json += R"(,"snapshot":)" + table_.snapshot(row.id).value_or("null");
  json += R"(,"created_at":)" + std::to_string(row.created_at_ms);
  json += R"(,"attempts":)" + std::to_string(row.attempts);
  json += R"(,"last_error":)";
  append_json_string(json, table_.last_error(row.id).value_or(""));
  return json + "}";
}

bool Fibers::is_due(const Waiting& each, const Now& now) const {
  return !each.recovering && each.due.reached(now) && !in_hook_.contains(each.row.id);
}

bool Fibers::due() const {
  const Now now(clock_);
  return std::ranges::any_of(waiting_, [&](const Waiting& each) { return is_due(each, now); });
}

Wake Fibers::wake() const {
  Wake wake;
  wake.working = !running_.empty();
  const Now now(clock_);
  for (const Waiting& each : waiting_) {
    // Without its hook's end nothing happens to it, whatever the time is.
    const bool in_hook = each.recovering || in_hook_.contains(each.row.id);
    wake.working = wake.working || in_hook;
    if (!in_hook || each.recovering) wake.at_ms = earliest(wake.at_ms, each.due.wall_ms(now));
  }
  return wake;
}

// ---- for ManagedFibers ------------------------------------------------------------------------------------

Result<FiberHandle> Fibers::start_managed(std::string_view name, std::string_view id) {
  if (auto checked = check_start(name); checked.has_error()) return checked.error();
  if (find(id)) return Error{Errc::kConflict, "a fiber has this id"};
  FiberRow row;
  row.id = id;
  row.name = name;
  row.created_at_ms = now_ms();
  table_.insert(row);
  return add_running(std::move(row), true);
}

Result<FiberHandle> Fibers::resume(std::string_view id) {
  const auto found = find_waiting(id);
  if (found == waiting_.end() || !found->recovering) {
    return Error{Errc::kNotFound, "no fiber of this id is being recovered"};
  }
  if (running_.size() >= settings_.max_running) {
    return Error{Errc::kLimitExceeded, "too many fibers run in this agent"};
  }
  const FiberHandle handle = add_running(std::move(found->row), found->managed);
  waiting_.erase(found);
  return handle;
}

void Fibers::postpone(std::string_view id, std::int64_t next_at_ms) {
  const auto found = find_running(id);
  HEARTH_ASSERT(found != running_.end(), "a fiber that does not run is postponed");
  Waiting waiting{.row = std::move(found->second.row), .managed = found->second.managed};
  running_.erase(found);
  waiting.row.attempts = 0;
  give_back_recovery(waiting.row);
  wait_until(waiting, next_at_ms);
  table_.note_attempt(waiting.row);
  add_waiting(std::move(waiting));
}

void Fibers::erase(std::string_view id) {
  table_.erase(id);
  std::erase_if(left_over_, [id](const LeftOver& each) { return each.id == id; });
  // `id` may be the row's own: it is not looked at once that has gone.
  if (const auto running = find_running(id); running != running_.end()) {
    running_.erase(running);
  } else if (const auto waiting = find_waiting(id); waiting != waiting_.end()) {
    waiting_.erase(waiting);
  }
}

void Fibers::restore(const FiberRow& row) {
  table_.insert(row);
  Waiting waiting{.row = row, .managed = true};
  waiting.row.snapshot.reset();
  wait_until(waiting, row.next_at_ms);
  add_waiting(std::move(waiting));
}

void Fibers::mark_managed(std::string_view id, std::int64_t next_at_ms) {
  const auto found = find_waiting(id);
  if (found == waiting_.end()) return;
  found->managed = true;
  if (next_at_ms == 0) return;
  wait_until(*found, std::max(found->row.next_at_ms, next_at_ms));
  for (LeftOver& each : left_over_) each.was_running = each.was_running && each.id != id;
}

std::optional<FiberStanding> Fibers::find(std::string_view id) {
  for (const auto& [handle, each] : running_) {
    if (each.row.id == id)
      return FiberStanding{handle, false, false, each.managed, each.row.attempts, 0};
  }
  for (const Waiting& each : waiting_) {
    if (each.row.id == id)
      return FiberStanding{
          0, each.recovering, false, each.managed, each.row.attempts, each.row.next_at_ms};
  }
  if (const auto dead = table_.find_dead(id))
    return FiberStanding{0, false, true, false, dead->attempts, dead->next_at_ms};
  return std::nullopt;
}

const std::string* Fibers::managed_id(FiberHandle fiber) const {
  const auto found = running_.find(fiber);
  if (found == running_.end() || !found->second.managed) return nullptr;
  return &found->second.row.id;
}

std::vector<std::string> Fibers::waiting_ids() const {
  std::vector<std::string> ids;
  ids.reserve(waiting_.size());
  for (const Waiting& each : waiting_) ids.push_back(each.row.id);
  return ids;
}

Fibers::Counts Fibers::counts() {
  return Counts{running_.size(), waiting_.size(), table_.count_dead()};
}

}  // namespace hearth::durable
