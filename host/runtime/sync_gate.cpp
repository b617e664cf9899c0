#include "runtime/sync_gate.hpp"

#include <utility>

namespace hearth::runtime {

SyncGate::SyncGate(storage::SyncService& service, ShardLoop& loop,
                   const storage::AgentDatabase& database,
                   std::shared_ptr<storage::SyncTarget> directory)
    : service_(service), loop_(loop), database_(database), directory_(std::move(directory)) {}

void SyncGate::request(std::function<void(bool)> done) {
  const auto unanswered = with_directory_ ? unanswered_ : nullptr;
  if (unanswered) ++*unanswered;
  service_.submit(take_targets(),
                  [&loop = loop_, unanswered, done = std::move(done)](bool durable) {
                    loop.post([unanswered, done, durable] {
                      if (unanswered) --*unanswered;
                      done(durable);
                    });
                  });
}

bool SyncGate::wait() {
  // Also what earlier requests are about, whose answers are still under way: whoever waits here does not hear them.
  with_directory_ = with_directory_ || *unanswered_ > 0;
  if (service_.wait(take_targets())) return true;
  // It may only have taken too long. But then nobody knows, and nothing may go on over that WAL.
  if (database_.sync_target() != nullptr) database_.sync_target()->fail();
  return false;
}

storage::SyncTargets SyncGate::take_targets() {
  storage::SyncTargets targets;
  if (database_.sync_target() != nullptr) targets.push_back(database_.sync_target());
  if (std::exchange(with_directory_, false)) targets.push_back(directory_);
  return targets;
}

}  // namespace hearth::runtime
