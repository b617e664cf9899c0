#pragma once
// What the shards of one runtime share, and what the agents of one shard share.

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
class DataDirectory;
class DirectoryCheckpointer;
class SyncService;
class SyncTarget;
}  // namespace hearth::storage

namespace hearth::runtime {

class AgentClass;
class BlockingPool;
class ClassRegistry;
class CondemnedAgents;
class DurabilityGate;
class ObjectPlaces;
struct OffloadOrigin;

// What the shards of one runtime share. All of it outlives them.
struct ShardEnvironment {
  const RuntimeLimits& limits;
  const storage::DataDirectory& data;
  ClassRegistry& classes;
  BlockingPool& pool;
  BlockingPool* closers;        // close databases; null: the shard does it
  BlockingPool* checkpointers;  // move WALs into the files; null: the shard does it
  Logger& logger;
  Random& random;
  ClientMemory& client_memory;
  CrashedAgent& crashed;
  // The protocol's frame that tells clients the state.
  const std::function<std::string(std::string_view state_json)>& state_frame;
  storage::SyncService& sync;                          // for classes of durability `power`
  std::shared_ptr<storage::SyncTarget> directory_wal;  // the WAL of the directory of agents
  storage::DirectoryCheckpointer& directory_checkpointer;
  // How the agents of a shard reach other servers; empty: they cannot.
  const std::function<extensions::HttpPort*(unsigned shard)>& http_port;
  // How the agents of a shard reach other agents; null: they cannot.
  std::function<extensions::AgentRouter*(unsigned shard)> agent_router;
  ObjectPlaces& object_places;    // shared by all shards
  extensions::SpanLog* span_log;  // null: no spans are recorded
};

// The parts of a shard that its live agents use. It owns none of them.
//
// Threads   The shard's own.
struct ShardServices : ShardEnvironment {
  ShardLoop& loop;
  extensions::DurableEvents& durable_events;  // where each step of durable work is reported
  ShardMetrics& metrics;
  Connections& connections;
  AgentFiles& files;
  CondemnedAgents& condemned;
  AlarmClock& alarms;
  std::shared_ptr<const bool> alive;  // false: the shard is gone
  extensions::OutwardPorts ports;
  extensions::SpanSource spans;  // for all events of the shard

  // The gate that tells the outbox of an agent of durability `power` when its commits are durable.
  [[nodiscard]] std::unique_ptr<DurabilityGate> make_gate(
      const storage::AgentDatabase& database) const;

  // An agent's files could not be opened or written: logs and counts it. `span`: of what was done.
  void note_storage_failed(const storage::AgentKey& key, const StorageError& failure,
                           const extensions::Span& span = {}) const;
  // Logs that an event of an agent has failed.
  void write_failure(std::string_view line, const storage::AgentKey& key, const Error& failure,
                     CallId call, const extensions::Span& span) const;

  // Runs a job of `agent_class` on the blocking pool, then `done` on this shard. False: too many
  // jobs wait.
  bool run_offloaded(std::shared_ptr<const AgentClass> agent_class, std::uint64_t job,
                     OffloadOrigin origin, std::shared_ptr<std::atomic<bool>> abandoned,
                     std::function<void(Result<void>)> done) const;
};

}  // namespace hearth::runtime
