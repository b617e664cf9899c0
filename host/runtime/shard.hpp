#pragma once
// All agents that live on one loop, and their clients.

#include "base/logger.hpp"
#include "base/random.hpp"
#include "durable/wake_index.hpp"
#include "runtime/admission.hpp"
#include "runtime/agent_handles.hpp"
#include "runtime/agent_slot.hpp"
#include "runtime/alarm_clock.hpp"
#include "runtime/blocking_pool.hpp"
#include "runtime/class_registry.hpp"
#include "runtime/condemned_agents.hpp"
#include "runtime/connections.hpp"
#include "runtime/crashed_agent.hpp"
#include "runtime/database_threads.hpp"
#include "runtime/destructions.hpp"
#include "runtime/durable_counts.hpp"
#include "runtime/keyed_calls.hpp"
#include "runtime/loop_timer.hpp"
#include "runtime/migration.hpp"
#include "runtime/paced_steps.hpp"
#include "runtime/shard_metrics.hpp"
#include "runtime/shard_services.hpp"
#include "runtime/shard_sub_agents.hpp"
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
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace hearth::storage {
class DataDirectory;
}

namespace hearth::runtime {

// Which of `count` shards an agent lives on, in this process: that of the topmost agent above it.
[[nodiscard]] unsigned shard_index(const storage::AgentKey& key, unsigned count);

// What the shards of one runtime have in common. All of it outlives them.
struct ShardEnvironment {
  const RuntimeLimits& limits;
  const storage::DataDirectory& data;
  ClassRegistry& classes;
  BlockingPool& pool;
  BlockingPool* closers;        // where databases are closed; null: on their shard
  BlockingPool* checkpointers;  // where their WALs are moved into the files; null: likewise
  Logger& logger;
  Metrics& metrics;
  Random& random;
  ClientMemory& client_memory;
  CrashedAgent& crashed;
  std::function<std::string(std::string_view state_json)> state_frame;
  storage::SyncService& sync;                          // for classes of durability `power`
  std::shared_ptr<storage::SyncTarget> directory_wal;  // what they have written to the directory
  storage::DirectoryCheckpointer& directory_checkpointer;
  // How the agents of a shard reach other servers; empty: they cannot.
  std::function<extensions::HttpPort*(unsigned shard)> http_port;
  // How they reach each other; null: they cannot.
  std::function<extensions::AgentRouter*(unsigned shard)> agent_router;
  ObjectPlaces& object_places;  // shared by all shards
};

// Threads    The loop's own, but for the constructor.
// Lifetime   The loop outlives it. stop() and its answer come before destruction, unless nothing
//            was ever woken.
class Shard final : private AlarmedAgents, private MovingAgents, private AgentSlots {
 public:
  // `index` of `count`: numbers the handles, divides the limits, and says which agents are this
  // shard's. Throws StorageError if the directory of agents cannot be opened.
  Shard(unsigned index, unsigned count, ShardLoop& loop, const ShardEnvironment& environment);
  ~Shard();
  Shard(const Shard&) = delete;
  Shard& operator=(const Shard&) = delete;

  // ---- what clients do ----
  // A client wants in. The result is its id from now on: what it does is reported with it through
  // the members below.
  // If it cannot be let in, the port is told to close.
  ConnectionId connect(const storage::AgentKey& key, std::string_view segment,
                       ConnectRequest request, std::unique_ptr<ConnectionPort> port);
  // A frame that is none of the protocol's.
  void message(ConnectionId id, std::string_view payload, FrameKind kind);
  // A method call. `arguments`: JSON array, checked by the caller.
  void call(ConnectionId id, std::string_view method, std::string_view arguments,
            std::unique_ptr<CallSink> sink);
  // A client replaces the state (JSON, checked by the caller). The sink hears of success or of the
  // reason. After a refusal by the agent the client is sent the state that holds. An empty text is
  // refused: it stands for a state that the caller cannot take.
  void write_state(ConnectionId id, std::string_view json, std::unique_ptr<CallSink> sink);
  // The socket is gone. The port is not used again, and destroyed soon.
  void disconnected(ConnectionId id, std::uint16_t code, std::string_view reason, bool was_clean);

  // A client wants to reach `child`, right below the agent `key`, which says yes by succeeding. The
  // head of its answer counts as well: one with a status of 400 or more says no.
  void ask_for_sub_agent(const storage::AgentKey& key, std::string_view segment,
                         const storage::AgentKey& child, std::unique_ptr<RequestHead> head,
                         std::unique_ptr<CallSink> sink);

  // A method call that comes through no connection: from another agent, for `origin`
  // (extensions::AgentRouter), or from a client over plain HTTP. `timeout`: see Interruptions.
  // `must_exist`: kNotFound if the agent has neither stored anything nor is in memory.
  struct AgentCallIn {
    storage::AgentKey key;
    std::string segment;
    std::string method;
    std::string arguments;
    extensions::OriginPtr origin;
    std::chrono::milliseconds timeout{0};
    bool must_exist = false;
    // A client calls, over plain HTTP: it gets the end of the answer and no parts, and `timeout` is
    // the time of the whole call. It may send the call again under this key.
    bool is_of_client = false;
    std::optional<extensions::CallKey> retry_key = {};
  };
  void call(const AgentCallIn& call, std::unique_ptr<CallSink> sink);

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
  // Whoever waits for agents that failed to start on the version that was on trial is told so, if
  // it is still the one that is served; else those agents are woken.
  void trial_is_over(std::string_view segment);
  // What waited for the class goes on, or is told that it has waited in vain.
  void class_is_back(std::string_view segment);
  // Its agents that were put off, or wait for this version, are looked at now.
  void hurry(std::string_view segment);
  void class_is_gone(std::string_view segment);
  // Closes the clients of the agents of a class, and of all agents below those.
  void end_clients(std::string_view agent_class, std::uint16_t code, std::string_view why);

  // ---- what an administrator asks (shard_admin.cpp) ----
  // What is to be said of an agent, which need not exist.
  struct Standing {
    AgentState state = AgentState::kCold;
    bool in_memory = false;
    std::size_t connections = 0;
    std::string version;  // of its code, while it is in memory
    durable::Wake wake;   // what the wake index says
    bool condemned = false;
    std::optional<std::int64_t> last_active_ms = {};  // Unix time, while it is in memory
  };
  [[nodiscard]] Standing standing(const storage::AgentKey& key) const;
  // The first names of a class, greater than `after` and in byte order, of agents that are in
  // memory or have clients. Such an agent need not be in the directory: one that has stored nothing
  // is not.
  [[nodiscard]] std::vector<std::string> names_in_memory(std::string_view agent_class,
                                                         std::string_view after,
                                                         std::size_t at_most) const;
  // Whether the agent is in memory or in the directory. Throws StorageError.
  [[nodiscard]] bool exists(const storage::AgentKey& key);
  // How many agents of each class are in memory.
  [[nodiscard]] std::map<std::string, std::size_t> live_by_class() const;
  // The agent leaves memory: one that is starting as soon as it has started. In which state it was:
  // in all others nothing happens.
  AgentState evict(const storage::AgentKey& key);
  // What an administrator does with an agent's data: agent_visit.hpp.
  void visit(const storage::AgentKey& key, std::string_view segment, AgentVisit visit);
  // Lists an object that nobody has called yet. False: it is there already.
  Result<bool> create_object(const storage::AgentKey& key);
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
  // ---- AlarmedAgents ----
  [[nodiscard]] bool is_cold(const storage::AgentKey& key) const override;
  void look(const storage::AgentKey& key) override;
  void let_recover(const storage::AgentKey& key) override;
  void wake(const storage::AgentKey& key, PermitKind kind) override;
  // ---- MovingAgents ----
  [[nodiscard]] std::vector<MovingAgent*> in_memory() const override;
  [[nodiscard]] MovingAgent* find(const storage::AgentKey& key) const override;
  // ---- AgentSlots ----
  [[nodiscard]] std::function<void()> task(const storage::AgentKey& key,
                                           void (*what)(AgentSlot& slot)) override;
  [[nodiscard]] bool stopping() const override { return stopping_; }
  void look_at_unused(const AgentSlot& slot) override;
  void one_left() override;
  void end_below(const storage::AgentKey& key) override;
  void end_condemned(const storage::AgentKey& key);

  [[nodiscard]] AgentSlot* find_slot(const storage::AgentKey& key) const;
  [[nodiscard]] std::vector<AgentSlot*> slots_of(std::string_view segment) const;
  // The slots in memory, least recently used first.
  [[nodiscard]] std::vector<AgentSlot*> residents() const;
  AgentSlot& slot_for(const storage::AgentKey& key, std::string_view segment);
  // The client, if something of it is to be delivered; else null.
  [[nodiscard]] Connection* client_of(ConnectionId id);
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
  Admission admission_;    // its residents: slots in memory
  PacedSteps steps_;       // who wakes because a time has come
  PacedSteps departures_;  // who leaves, and is not waited for: whole versions at a time
  PacedSteps recoveries_;  // who recovers: limits.recovery_share
  Migration migration_;
  AlarmClock alarms_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // tasks of the loop check it
  Destructions destructions_;
  DatabaseThreads threads_;
  AgentHandles handles_;
  ShardSubAgents sub_agents_;
  KeyedCalls keyed_calls_;
  ShardServices services_;
  bool stopping_ = false;
  LoopTimer stop_timer_;
  std::function<void()> stopped_;  // set between stop() and its answer
  std::unordered_map<storage::AgentKey, std::unique_ptr<AgentSlot>> slots_;
};

}  // namespace hearth::runtime
