#pragma once
// The durability `power` of one agent: the sync service brings its commits to the device.

#include "runtime/durability_gate.hpp"
#include "runtime/shard_loop.hpp"
#include "storage/agent_database.hpp"
#include "storage/sync_service.hpp"

#include <memory>

namespace hearth::runtime {

// Threads    As in DurabilityGate.
// Lifetime   The service, the loop and the database outlive it. An answer may come on the loop
//            after its destruction.
class SyncGate final : public DurabilityGate {
 public:
  // `directory`: the WAL of the directory of agents, which all agents share. Never null.
  SyncGate(storage::SyncService& service, ShardLoop& loop, const storage::AgentDatabase& database,
           std::shared_ptr<storage::SyncTarget> directory);

  void request(std::function<void(bool durable)> done) override;
  void directory_written() override { with_directory_ = true; }

 private:
  // The files written to since the last call.
  storage::SyncTargets take_targets();

  storage::SyncService& service_;
  ShardLoop& loop_;
  const storage::AgentDatabase& database_;
  const std::shared_ptr<storage::SyncTarget> directory_;
  bool with_directory_ = false;
};

}  // namespace hearth::runtime
