// Inner fibers: those that another fiber, their parent, waits for.
#include "durable/managed_fibers.hpp"
#include "json/json_text.hpp"

#include <array>
#include <utility>

namespace hearth::durable {

using storage::Param;

bool ManagedFibers::is_open(std::string_view id) {
  const auto job = jobs().find(JobKind::kManaged, id);
  return job && !job->ended_at_ms;
}

void ManagedFibers::abort_inner(ManagedChange& outer, const std::optional<std::string>& reason) {
  const auto add_open = [&](std::string_view parent) {
    jobs().each("WHERE parent = ? AND +kind = 2 AND ended_at IS NULL", std::array{Param(parent)},
                [&](const Job& job) {
                  outer.inner.push_back(job.id);
                  return true;
                });
  };
  add_open(outer.id);
  if (outer.inner.empty()) return;
  std::string ids;
  for (std::size_t next = 0; next < outer.inner.size(); ++next) {
    const std::string id = outer.inner[next];
    std::optional<FiberRecord> record = find_record(id);
    FiberOutcome outcome;
    outcome.status = FiberStatus::kAborted;
    outcome.error = reason;
    if (record) (void)settle_alone(*std::move(record), std::move(outcome), false);
    add_open(id);
    ids += next == 0 ? "" : ",";
    append_json_string(ids, id);
  }
  outer.record.pop_back();
  outer.record += R"(,"inner":[)" + ids + "]}";
}

// Removes the kept values of a fiber that does not need them any more. Open children of a fiber
// that was not aborted go on. A child that keeps its record loses a key that only this fiber uses:
// in a later run the same key may mean another place.
void ManagedFibers::remove_children(std::string_view parent) {
  const std::int64_t removed = jobs().run(
      "DELETE FROM cf_agents_jobs WHERE parent = ? AND +kind = 2 AND type = 'brief' "
      "AND ended_at IS NOT NULL AND dead = 0",
      std::array{Param(parent)});
  if (removed > 0) count().removed_some();
  jobs().run(
      "UPDATE cf_agents_jobs SET key = NULL WHERE parent = ?1 AND +kind = 2 AND type = 'kept' "
      "AND ended_at IS NOT NULL AND substr(key, 1, length(?1) + 1) = ?1 || '/'",
      std::array{Param(parent)});
}

void ManagedFibers::checkpointed(std::string_view id) {
  const auto parent = parents_.find(id);
  if (parent == parents_.end()) return;
  parents_.erase(parent);
  remove_children(id);
}

}  // namespace hearth::durable
