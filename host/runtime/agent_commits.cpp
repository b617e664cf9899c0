#include "runtime/agent_commits.hpp"

#include <utility>

namespace hearth::runtime {

AgentCommits::AgentCommits(const Parts& parts, storage::Kept kept,
                           std::unique_ptr<DurabilityGate> gate)
    : parts_(parts),
      gate_(std::move(gate)),
      known_(parts.alarms.known(parts.key)),
      kept_(kept),
      // A file alone proves no entry: host.db may have been lost and replaced by an older one.
      recorded_(kept != storage::Kept::kUnknown) {}

bool AgentCommits::must_hold_back() {
  if (!gate_ || parts_.database.sync_target() == nullptr) return false;
  gate_->directory_written();
  return true;
}

void AgentCommits::record() {
  if (recorded_) return;
  parts_.files.record(parts_.key);
  // Lists of a class must show also those that have only sub-agents.
  for (auto above = parts_.key.parent(); above; above = above->parent())
    parts_.files.record(*above);
  directory_was_written(false);
  recorded_ = true;
}

void AgentCommits::directory_was_written(bool is_awaited) {
  if (!gate_) return;
  gate_->directory_written();
  directory_dirty_ = directory_dirty_ || is_awaited;
}

void AgentCommits::commit(const durable::Wake& wake) {
  if (parts_.database.dirty()) record();
  directory_dirty_ = false;
  if (wake.earlier_than(known_)) {
    tell(durable::either(wake, known_));
    directory_was_written(false);
    stop_point("commit.index_written");
  }
  parts_.database.commit();
  state_writes_ = parts_.database.state_writes();
  stops_.committed();
  note_kept(storage::Kept::kInThisBoot);
  if (!gate_) tell_later(wake);  // else all_durable() does this
}

void AgentCommits::note_kept(storage::Kept kept) {
  if (kept_ >= kept || !parts_.database.stored()) return;
  kept_ = kept;
  parts_.files.note_kept(parts_.key, kept);
}

void AgentCommits::all_durable(const durable::Wake* wake) {
  note_kept(storage::Kept::kOnDevice);
  if (wake != nullptr) tell_later(*wake);
}

void AgentCommits::tell_later(const durable::Wake& wake) {
  if (wake == known_) return;
  stop_point("commit.index_late");
  try {
    tell(wake);
  } catch (const StorageError& failure) {  // the commit stands; a wake without need is harmless
    parts_.logger.write_limited(LogLevel::kWarn, "agent.wake_not_cleared", {parts_.key.agent_class},
                                {{"class", parts_.key.agent_class},
                                 {"agent", parts_.key.name},
                                 {"error", std::string_view(failure.what())}});
  }
}

void AgentCommits::at_end(const durable::Wake& rest) {
  durable::Wake wake = known_;
  wake.unknown_operations = rest.unknown_operations;
  wake.needs_person = rest.needs_person;
  // Work in progress may be due already, at the time that the index knows.
  if (!rest.working) wake.at_ms = rest.at_ms;
  tell_later(wake);
}

void AgentCommits::tell(const durable::Wake& wake) {
  parts_.alarms.set_wake(parts_.key, wake);
  known_ = wake;
}

std::string AgentCommits::close() {
  try {
    parts_.database.close();
    kept_at_end_ = kept_ != storage::Kept::kOnDevice && parts_.database.stored() &&
                   !parts_.database.broken() && parts_.files.data().sync_names_of(parts_.key);
    return {};
  } catch (const StorageError& failure) {  // agent boundary
    return failure.what();
  }
}

}  // namespace hearth::runtime
