#include "runtime/agent_commits.hpp"

#include <utility>

namespace hearth::runtime {

AgentCommits::AgentCommits(const Parts& parts, storage::Kept kept,
                           std::unique_ptr<DurabilityGate> gate)
    : files_(parts.files),
      key_(parts.key),
      database_(parts.database),
      gate_(std::move(gate)),
      keeper_(parts.alarms, parts.logger, parts.key),
      kept_(kept),
      recorded_(parts.database.exists()) {}

bool AgentCommits::must_hold_back() {
  if (!gate_ || database_.sync_target() == nullptr) return false;
  gate_->directory_written();
  return true;
}

void AgentCommits::record() {
  if (recorded_) return;
  files_.record(key_);
  // Lists of a class must show also those that have only sub-agents.
  for (auto above = key_.parent(); above; above = above->parent()) files_.record(*above);
  directory_was_written(false);
  recorded_ = true;
}

void AgentCommits::directory_was_written(bool is_awaited) {
  if (!gate_) return;
  gate_->directory_written();
  directory_dirty_ = directory_dirty_ || is_awaited;
}

void AgentCommits::commit(const durable::Wake& wake) {
  if (database_.dirty()) record();
  directory_dirty_ = false;
  if (keeper_.before_commit(wake)) {
    directory_was_written(false);
    stop_point("commit.index_written");
  }
  database_.commit();
  state_writes_ = database_.state_writes();
  stops_.committed();
  note_kept(storage::Kept::kInThisBoot);
  if (!gate_) keeper_.after_commit(wake);  // else all_durable() does this
}

void AgentCommits::note_kept(storage::Kept kept) {
  if (kept_ >= kept || !database_.stored()) return;
  kept_ = kept;
  files_.note_kept(key_, kept);
}

void AgentCommits::all_durable(const durable::Wake* wake) {
  note_kept(storage::Kept::kOnDevice);
  if (wake != nullptr) keeper_.after_commit(*wake);
}

void AgentCommits::close() {
  database_.close();
  kept_at_end_ = kept_ != storage::Kept::kOnDevice && database_.stored() && !database_.broken() &&
                 files_.sync_names(key_);
}

}  // namespace hearth::runtime
