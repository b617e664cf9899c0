#pragma once
// What the agents of one shard share.

#include "base/client_memory.hpp"
#include "base/logger.hpp"
#include "base/random.hpp"
#include "durable/wake.hpp"
#include "runtime/class_settings.hpp"
#include "runtime/connection.hpp"
#include "runtime/shard_loop.hpp"
#include "storage/agent_key.hpp"
#include "storage/kept.hpp"

#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace hearth::runtime {

class AgentClass;
class AgentSlot;
class DurabilityGate;
class DurableEvents;
class ShardMetrics;

// Threads   The shard's own. The shard implements it.
class ShardServices {
 public:
  ShardServices() = default;
  virtual ~ShardServices() = default;
  ShardServices(const ShardServices&) = delete;
  ShardServices& operator=(const ShardServices&) = delete;

  virtual ShardLoop& loop() = 0;
  virtual Logger& logger() = 0;
  // Where each step of durable work is reported, and what else is counted.
  virtual DurableEvents& durable_events() = 0;
  virtual ShardMetrics& metrics() = 0;
  virtual ClientMemory& client_memory() = 0;
  [[nodiscard]] virtual const RuntimeLimits& limits() const = 0;

  [[nodiscard]] virtual std::filesystem::path database_path(const storage::AgentKey& key) const = 0;
  // For agents of durability `power`: what syncs, and how their outboxes hear of it.
  virtual storage::SyncService& sync() = 0;
  virtual std::unique_ptr<DurabilityGate> make_gate(const storage::AgentDatabase& database) = 0;

  // Before an agent's first commit: the directory must know it. Throws StorageError, also if the data directory is gone.
  virtual void record_agent(const storage::AgentKey& key) = 0;

  // What the directory knows of the agent's file. Throws StorageError, also if the data directory is gone.
  [[nodiscard]] virtual storage::Kept kept(const storage::AgentKey& key) = 0;
  // Something was committed to it. A failure is logged: then a loss of the file will not be noticed.
  virtual void note_kept(const storage::AgentKey& key, storage::Kept kept) = 0;
  // Any thread: whether the names that lead to it are on the device. Waits for it.
  [[nodiscard]] virtual bool sync_names(const storage::AgentKey& key) const = 0;

  // The agent asks to be destroyed: it is certain when this returns. Throws StorageError.
  virtual void condemn(const storage::AgentKey& key) = 0;

  virtual Random& random() = 0;
  // What the wake index says of an agent, and how it is told. set_wake throws StorageError.
  [[nodiscard]] virtual durable::Wake known_wake(const storage::AgentKey& key) const = 0;
  virtual void set_wake(const storage::AgentKey& key, const durable::Wake& wake) = 0;

  // Null if no connection has this id.
  virtual Connection* find_connection(ConnectionId id) = 0;
  // The frame of the protocol that tells clients the state.
  virtual std::string state_frame(std::string_view state_json) = 0;

  // Runs a job of `agent_class` on the blocking pool, then `done` on this shard. False: too many wait.
  virtual bool run_job(std::shared_ptr<const AgentClass> agent_class, std::uint64_t job,
                       std::shared_ptr<std::atomic<bool>> abandoned,
                       std::function<void(Result<void>)> done) = 0;

  // No plugin code of this agent is on the stack any more: look at what happened.
  virtual void after_turn(AgentSlot& slot) = 0;
};

}  // namespace hearth::runtime
