#pragma once
// All agents that live on one loop, and their clients.

#include "base/logger.hpp"
#include "base/random.hpp"
#include "base/slot_map.hpp"
#include "durable/wake_index.hpp"
#include "runtime/admission.hpp"
#include "runtime/agent_slot.hpp"
#include "runtime/alarm_clock.hpp"
#include "runtime/blocking_pool.hpp"
#include "runtime/class_registry.hpp"
#include "runtime/condemned_agents.hpp"
#include "runtime/connections.hpp"
#include "runtime/durable_counts.hpp"
#include "runtime/migration.hpp"
#include "runtime/paced_steps.hpp"
#include "runtime/shard_metrics.hpp"
#include "runtime/shard_services.hpp"
#include "storage/directory.hpp"
#include "storage/sync_service.hpp"
#include "telemetry/metrics.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace hearth::storage {
class DataDirectory;
}

namespace hearth::runtime {

// Which of `count` shards an agent lives on, in this process.
[[nodiscard]] unsigned shard_index(const storage::AgentKey& key, unsigned count);

// What the shards of one runtime have in common. All of it outlives them.
struct ShardEnvironment {
  const RuntimeLimits& limits;
  const storage::DataDirectory& data;
  ClassRegistry& classes;
  BlockingPool& pool;
  BlockingPool* closers;        // where databases are closed; null: on their shard
  BlockingPool* checkpointers;  // where their WALs are moved into the files; null as well
  Logger& logger;
  Metrics& metrics;
  Random& random;
  ClientMemory& client_memory;
  std::function<std::string(std::string_view state_json)> state_frame;
  storage::SyncService& sync;                          // for classes of durability `power`
  std::shared_ptr<storage::SyncTarget> directory_wal;  // what they have written to the directory
  storage::DirectoryCheckpointer& directory_checkpointer;
};

// Threads    The loop's own, but for the constructor.
// Lifetime   The loop outlives it. stop() and its answer come before destruction, unless nothing
//            was ever woken.
class Shard final : private AlarmedAgents, private MovingAgents {
 public:
  // `index` of `count`: numbers the handles, divides the limits, and says which agents are this
  // shard's. Throws StorageError if the directory of agents cannot be opened.
  Shard(unsigned index, unsigned count, ShardLoop& loop, const ShardEnvironment& environment);
  ~Shard();
  Shard(const Shard&) = delete;
  Shard& operator=(const Shard&) = delete;

  // ---- what clients do ----
  // A client wants in. The result is its id from now on; news of it come through the members below.
  // If it cannot be let in, the port is told to close.
  ConnectionId connect(const storage::AgentKey& key, std::string_view segment,
                       ConnectRequest request, std::unique_ptr<ConnectionPort> port);
  // A frame that is none of the protocol's.
  void message(ConnectionId id, std::string_view payload, FrameKind kind);
  // A method call. `arguments`: JSON array, checked by the caller.
  void call(ConnectionId id, std::string_view method, std::string_view arguments,
            std::unique_ptr<CallSink> sink);
  // A client replaces the state (JSON, checked by the caller). The sink hears of success or of the
  // reason.
  void write_state(ConnectionId id, std::string_view json, std::unique_ptr<CallSink> sink);
  // The socket is gone. The port is not used again, and destroyed soon.
  void disconnected(ConnectionId id, std::uint16_t code, std::string_view reason, bool was_clean);

  // An HTTP request to an agent.
  void request(const storage::AgentKey& key, std::string_view segment, std::string_view method,
               std::string_view body, std::unique_ptr<RequestHead> head,
               std::unique_ptr<CallSink> sink);

  // ---- what the runtime does ----
  LiveAgent* find_agent(AgentHandle handle);
  // Refuses new work, lets running events finish until `deadline`, evicts everything, then calls
  // `done`. Once.
  void stop(SteadyTime deadline, std::function<void()> done);

  // From now on agents are woken when their time has come. Once; the classes are loaded.
  void start_alarms();

  // ---- another version of a class (shard_versions.cpp) ----
  [[nodiscard]] Migration& migration() { return migration_; }
  // Agents that failed to start on the version that was on trial are told so, if it is still the
  // one; else they are woken.
  void trial_is_over(std::string_view segment);
  // What waited for the class goes on, or is told that it has waited in vain.
  void class_is_back(std::string_view segment);
  void class_is_gone(std::string_view segment);

  // ---- what an administrator asks (shard_admin.cpp) ----
  // What is to be said of an agent, which need not exist.
  struct Standing {
    AgentState state = AgentState::kCold;
    std::size_t connections = 0;
    std::string version;  // of its code, while it is not cold
    durable::Wake wake;   // what the wake index says
  };
  [[nodiscard]] Standing standing(const storage::AgentKey& key) const;
  // The first names of a class, greater than `after` and in byte order, of agents that are not cold
  // or have clients. Such an agent need not be in the directory: one that has stored nothing is
  // not.
  [[nodiscard]] std::vector<std::string> names_in_memory(std::string_view agent_class,
                                                         std::string_view after,
                                                         std::size_t at_most) const;
  // How many agents of each class are not cold.
  [[nodiscard]] std::map<std::string, std::size_t> live_by_class() const;
  // The agent leaves memory: one that is starting as soon as it has started. In which state it was;
  // if cold or on its way out, nothing happens.
  AgentState evict(const storage::AgentKey& key);
  // As if it had asked for it itself (AgentContext::destroy). When this has returned it is certain.
  // kUnavailable: it is starting or leaving, or an earlier destruction waits; try again.
  Result<void> destroy(const storage::AgentKey& key);

  struct Counts {
    std::size_t live = 0;
    std::size_t slots = 0;
    std::size_t connections = 0;
  };
  [[nodiscard]] Counts counts() const;

 private:
  friend class AgentSlot;

  // As the slots ask for them.
  [[nodiscard]] ShardLoop& loop() const { return loop_; }
  [[nodiscard]] Logger& logger() const { return environment_.logger; }
  [[nodiscard]] const RuntimeLimits& limits() const { return environment_.limits; }
  [[nodiscard]] Connection* find_connection(ConnectionId id) { return connections_.find(id); }

  // ---- AlarmedAgents (shard_alarms.cpp) ----
  [[nodiscard]] bool is_cold(const storage::AgentKey& key) const override;
  void look(const storage::AgentKey& key) override;
  void let_recover(const storage::AgentKey& key) override;
  void wake(const storage::AgentKey& key, bool HeldPermits::* kind) override;
  // Begins one thing that is due in a live agent, and comes back while there is more: one event in
  // each round of the loop, so that clients' frames and other agents' work come in between.
  void pump(const storage::AgentKey& key);
  void give_back_permits(AgentSlot& slot);

  // Of a condemned agent that has left memory: its files are removed on another thread, since that
  // waits for the device. Then `done`, on the shard; if something is left, it is tried again in a
  // while.
  void finish_destruction(const storage::AgentKey& key, const std::function<void()>& done);
  void finish_destructions_later();

  // The slots that are not cold, least recently used first.
  [[nodiscard]] std::vector<AgentSlot*> residents() const;
  // ---- MovingAgents (shard_versions.cpp) ----
  [[nodiscard]] std::vector<MovingAgent*> in_memory() const override;
  [[nodiscard]] MovingAgent* find(const storage::AgentKey& key) const override;

  [[nodiscard]] std::vector<AgentSlot*> slots_of(std::string_view segment) const;

  AgentSlot& slot_for(const storage::AgentKey& key, std::string_view segment);

  AgentHandle admit(AgentSlot& slot);
  void release(AgentSlot& slot);
  // Closes the agent's database on another thread: that waits for the device, and the shard's
  // clients need not. Then `done`, on the shard. False: here and now, please.
  bool close_elsewhere(LiveAgent& live, std::function<void(const std::string& trouble)> done);
  // Lends the agent to another thread for a checkpoint, which waits for the device, and takes it
  // back. Only this agent waits.
  void checkpoint_elsewhere(LiveAgent& live);
  // For finish_destruction(): what went wrong, or "". Waits for the device. Any thread.
  [[nodiscard]] std::string remove_condemned_files(const storage::AgentKey& key) const;
  // Removes the slot soon, if it is still of no use then.
  void remove_if_unused(AgentSlot& slot);
  void check_stopped();
  void client_came();  // tells those who do work that may wait

  const unsigned index_;
  ShardLoop& loop_;
  ShardEnvironment environment_;
  ShardMetrics metrics_;
  DurableCounts durable_events_;
  Connections connections_;
  storage::Directory directory_;
  AgentFiles files_;
  durable::WakeIndex wakes_;
  CondemnedAgents condemned_;
  std::set<storage::AgentKey> being_removed_;  // their files, on another thread
  TimerId destruction_timer_ = 0;
  Admission admission_;    // its residents: slots that are not cold
  PacedSteps steps_;       // who wakes because a time has come
  PacedSteps departures_;  // who leaves, and is not waited for: whole versions at a time
  PacedSteps recoveries_;  // who recovers: limits.recovery_share
  Migration migration_;
  AlarmClock alarms_;
  std::unordered_map<storage::AgentKey, std::unique_ptr<AgentSlot>> slots_;
  SlotMap<AgentSlot*> handles_;
  bool stopping_ = false;
  TimerId stop_timer_ = 0;
  std::function<void()> stopped_;                               // set between stop() and its answer
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // tasks of the loop check it
  ShardServices services_;
};

}  // namespace hearth::runtime
