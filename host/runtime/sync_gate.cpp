#include "runtime/sync_gate.hpp"

#include <utility>

namespace hearth::runtime {

SyncGate::SyncGate(storage::SyncService& service, ShardLoop& loop,
                   const storage::AgentDatabase& database,
                   std::shared_ptr<storage::SyncTarget> directory)
    : service_(service), loop_(loop), database_(database), directory_(std::move(directory)) {}

void SyncGate::request(std::function<void(bool)> done) {
  service_.submit(take_targets(), [&loop = loop_, done = std::move(done)](bool durable) {
    loop.post([done, durable] { done(durable); });
  });
}

storage::SyncTargets SyncGate::take_targets() {
  storage::SyncTargets targets;
  if (database_.sync_target() != nullptr) targets.push_back(database_.sync_target());
  if (std::exchange(with_directory_, false)) targets.push_back(directory_);
  return targets;
}

}  // namespace hearth::runtime
