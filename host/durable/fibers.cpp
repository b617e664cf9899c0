#include "durable/fibers.hpp"

#include "base/utf8.hpp"
#include "durable/back_off.hpp"

#include <algorithm>
#include <utility>

namespace hearth::durable {
namespace {

constexpr std::size_t kMaxNameBytes = 256;
constexpr std::size_t kMaxErrorBytes = 4096;

}  // namespace

Fibers::Fibers(storage::AgentDatabase& database, const Clock& clock, Random& random,
               FiberSettings settings)
    : table_(database), clock_(clock), random_(random), settings_(settings) {}

void Fibers::load() {
  // No wait that we would set is longer: one that is was written by a clock that has been set back since.
  const std::int64_t latest = now_ms() + (settings_.retry_cap + settings_.retry_cap / 4).count();
  for (FiberRow& row : table_.load()) {
    row.next_at_ms = std::min(row.next_at_ms, latest);
    waiting_.push_back(Waiting{std::move(row)});
  }
}

std::vector<Fibers::Waiting>::iterator Fibers::find_waiting(std::string_view id) {
  return std::ranges::find(waiting_, id,
                           [](const Waiting& each) -> std::string_view { return each.row.id; });
}

// ---- work -------------------------------------------------------------------------------------------------

Result<Fibers::Started> Fibers::start(std::string_view name, std::string_view replaces) {
  if (name.empty() || name.size() > kMaxNameBytes || !is_valid_utf8(name)) {
    return Error{Errc::kInvalidArgument, "a fiber's name is 1 to 256 bytes of UTF-8"};
  }
  if (running_.size() >= settings_.max_running) {
    return Error{Errc::kLimitExceeded, "too many fibers run in this agent"};
  }
  FiberRow row;
  row.id = make_uuid(random_);
  row.name = name;
  row.created_at_ms = now_ms();
  if (!replaces.empty()) {
    const auto old = find_waiting(replaces);
    if (old == waiting_.end() || !old->recovering) {
      return Error{Errc::kNotFound, "no fiber of this id is being recovered"};
    }
    row.snapshot = table_.snapshot(replaces);
    // A continuation that dies before its first checkpoint has made no progress: its attempts go on counting.
    row.attempts = old->row.attempts;
    row.next_at_ms = old->row.next_at_ms;
    table_.erase(replaces);
    table_.insert(row);
    waiting_.erase(old);
  } else {
    table_.insert(row);
  }
  const FiberHandle handle = ++last_handle_;
  running_.emplace(handle, Running{row.id, row.attempts});
  return Started{handle, std::move(row.id)};
}

Result<void> Fibers::stash(FiberHandle fiber, std::string_view json) {
  const auto found = running_.find(fiber);
  if (found == running_.end()) return Error{Errc::kNotFound, "the fiber has ended"};
  if (json.size() > settings_.max_snapshot_bytes) {
    return Error{Errc::kLimitExceeded, "the checkpoint is larger than " +
                                           std::to_string(settings_.max_snapshot_bytes) + " bytes"};
  }
  table_.stash(found->second.id, json);
  found->second.attempts = 0;
  return {};
}

Result<std::string> Fibers::finish(FiberHandle fiber) {
  const auto found = running_.find(fiber);
  if (found == running_.end()) return Error{Errc::kNotFound, "the fiber has ended"};
  std::string id = std::move(found->second.id);
  table_.erase(id);
  running_.erase(found);
  return id;
}

void Fibers::interrupt_on_purpose() {
  for (auto& [handle, fiber] : running_) {
    if (fiber.attempts > 0) table_.note_attempt(fiber.id, --fiber.attempts, 0);
  }
  for (Waiting& each : waiting_) {
    if (each.recovering) table_.note_attempt(each.row.id, --each.row.attempts, 0);
  }
}

// ---- recovery ---------------------------------------------------------------------------------------------

std::optional<Interrupted> Fibers::begin_recovery() {
  const std::int64_t now = now_ms();
  for (Waiting& each : waiting_) {
    FiberRow& row = each.row;
    if (each.recovering || row.dead || row.next_at_ms > now) continue;
    if (row.attempts >= settings_.max_attempts) {
      row.dead = true;
      table_.note_failure(row.id, "interrupted again and again without progress", row.next_at_ms,
                          true);
      passed_over_.push_back(row.id);
      continue;
    }
    each.recovering = true;
    ++row.attempts;
    // If the hook takes the process with it, the next try waits like after any other failure.
    row.next_at_ms =
        now + back_off(row.attempts, settings_.retry_base, settings_.retry_cap, random_).count();
    table_.note_attempt(row.id, row.attempts, row.next_at_ms);
    return Interrupted{row.id, row.name, table_.snapshot(row.id), row.created_at_ms, row.attempts};
  }
  return std::nullopt;
}

void Fibers::recovered(std::string_view id) {
  const auto found = find_waiting(id);
  if (found == waiting_.end()) return;  // replaced by its continuation
  table_.erase(id);
  waiting_.erase(found);
}

Fibers::Failure Fibers::failed(std::string_view id, std::string_view error) {
  const auto found = find_waiting(id);
  if (found == waiting_.end()) return {};  // replaced: the continuation speaks for itself
  FiberRow& row = found->row;
  found->recovering = false;
  row.dead = row.attempts >= settings_.max_attempts;
  row.next_at_ms =
      now_ms() + back_off(row.attempts, settings_.retry_base, settings_.retry_cap, random_).count();
  table_.note_failure(id, error.substr(0, kMaxErrorBytes), row.next_at_ms, row.dead);
  return Failure{row.dead, row.next_at_ms};
}

Result<void> Fibers::retry(std::string_view id) {
  const auto found = find_waiting(id);
  if (found == waiting_.end() || !found->row.dead)
    return Error{Errc::kNotFound, "no dead fiber has this id"};
  table_.revive(id);
  found->row.dead = false;
  found->row.attempts = 0;
  found->row.next_at_ms = 0;
  return {};
}

bool Fibers::due() const {
  const std::int64_t now = now_ms();
  return std::ranges::any_of(waiting_, [now](const Waiting& each) {
    return !each.recovering && !each.row.dead && each.row.next_at_ms <= now;
  });
}

Wake Fibers::wake() const {
  Wake wake;
  wake.working = !running_.empty();
  for (const Waiting& each : waiting_) {
    if (each.row.dead) continue;
    wake.at_ms = earliest(wake.at_ms, each.row.next_at_ms);
    wake.working = wake.working || each.recovering;
  }
  return wake;
}

Fibers::Counts Fibers::counts() const {
  Counts counts;
  counts.running = running_.size();
  for (const Waiting& each : waiting_) ++(each.row.dead ? counts.dead : counts.interrupted);
  return counts;
}

}  // namespace hearth::durable
