#pragma once
// What the agents of one shard share.

#include "base/client_memory.hpp"
#include "base/logger.hpp"
#include "base/random.hpp"
#include "extensions/agent_context.hpp"
#include "extensions/trace.hpp"
#include "runtime/agent_files.hpp"
#include "runtime/alarm_clock.hpp"
#include "runtime/class_settings.hpp"
#include "runtime/connections.hpp"
#include "runtime/crashed_agent.hpp"
#include "runtime/shard_loop.hpp"

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace hearth::extensions {
class DurableEvents;
}

namespace hearth::storage {
class AgentDatabase;
class SyncService;
class SyncTarget;
}  // namespace hearth::storage

namespace hearth::runtime {

class AgentClass;
class BlockingPool;
class CondemnedAgents;
class DurabilityGate;
struct JobOrigin;

// The parts of a shard that its live agents use. It owns none of them.
//
// Threads   The shard's own, except files.sync_names().
struct ShardServices {
  ShardLoop& loop;
  Logger& logger;
  Random& random;
  ClientMemory& client_memory;
  const RuntimeLimits& limits;
  extensions::DurableEvents& durable_events;  // where each step of durable work is reported
  ShardMetrics& metrics;
  Connections& connections;
  AgentFiles& files;
  CondemnedAgents& condemned;
  AlarmClock& alarms;
  // For agents of durability `power`: the sync service, and the WAL of the directory of agents.
  storage::SyncService& sync;
  std::shared_ptr<storage::SyncTarget> directory_wal;
  BlockingPool& pool;
  CrashedAgent& crashed;
  // The protocol's frame that tells clients the state.
  const std::function<std::string(std::string_view state_json)>& state_frame;
  std::shared_ptr<const bool> alive;  // false: the shard is gone
  extensions::OutwardPorts ports;
  extensions::SpanSource spans;  // for all events of the shard

  // The gate that tells the outbox of an agent of durability `power` when its commits are durable.
  [[nodiscard]] std::unique_ptr<DurabilityGate> make_gate(
      const storage::AgentDatabase& database) const;

  // Runs a job of `agent_class` on the blocking pool, then `done` on this shard. False: too many
  // jobs wait.
  bool run_job(std::shared_ptr<const AgentClass> agent_class, std::uint64_t job, JobOrigin origin,
               std::shared_ptr<std::atomic<bool>> abandoned,
               std::function<void(Result<void>)> done) const;
};

}  // namespace hearth::runtime
