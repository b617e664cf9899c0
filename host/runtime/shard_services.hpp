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
// Threads   The shard's own, except files().sync_names().
class ShardServices {
 public:
  struct Parts {
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
  };
  explicit ShardServices(Parts parts);
  ~ShardServices();
  ShardServices(const ShardServices&) = delete;
  ShardServices& operator=(const ShardServices&) = delete;

  [[nodiscard]] ShardLoop& loop() const { return parts_.loop; }
  [[nodiscard]] Logger& logger() const { return parts_.logger; }
  [[nodiscard]] Random& random() const { return parts_.random; }
  [[nodiscard]] extensions::SpanSource& spans() { return spans_; }
  [[nodiscard]] ClientMemory& client_memory() const { return parts_.client_memory; }
  [[nodiscard]] const RuntimeLimits& limits() const { return parts_.limits; }
  [[nodiscard]] extensions::DurableEvents& durable_events() const { return parts_.durable_events; }
  [[nodiscard]] ShardMetrics& metrics() const { return parts_.metrics; }
  [[nodiscard]] Connections& connections() const { return parts_.connections; }
  [[nodiscard]] AgentFiles& files() const { return parts_.files; }
  [[nodiscard]] AlarmClock& alarms() const { return parts_.alarms; }
  [[nodiscard]] storage::SyncService& sync() const { return parts_.sync; }
  [[nodiscard]] const extensions::OutwardPorts& ports() const { return parts_.ports; }

  // How the previous process crashed, if it did so in this agent's work. Once.
  [[nodiscard]] std::optional<durable::EndedProcess> take_crash(
      const storage::AgentKey& key) const {
    return parts_.crashed.take(key);
  }
  [[nodiscard]] std::string state_frame(std::string_view state_json) const {
    return parts_.state_frame(state_json);
  }

  // The gate that tells the outbox of an agent of durability `power` when its commits are durable.
  [[nodiscard]] std::unique_ptr<DurabilityGate> make_gate(
      const storage::AgentDatabase& database) const;

  // The agent asks to be destroyed: that is certain when this returns. Throws StorageError.
  void condemn(const storage::AgentKey& key) const;

  // Runs a job of `agent_class` on the blocking pool, then `done` on this shard. False: too many
  // jobs wait.
  bool run_job(std::shared_ptr<const AgentClass> agent_class, std::uint64_t job, JobOrigin origin,
               std::shared_ptr<std::atomic<bool>> abandoned,
               std::function<void(Result<void>)> done) const;

 private:
  const Parts parts_;
  extensions::SpanSource spans_;  // for all events of the shard
};

}  // namespace hearth::runtime
