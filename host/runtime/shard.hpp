#pragma once
// All agents that live on one loop, and their clients.

#include "base/logger.hpp"
#include "base/random.hpp"
#include "durable/wake_index.hpp"
#include "extensions/sub_agents_port.hpp"
#include "extensions/wait.hpp"
#include "runtime/admission.hpp"
#include "runtime/agent_handles.hpp"
#include "runtime/agent_slot.hpp"
#include "runtime/alarm_clock.hpp"
#include "runtime/blocking_pool.hpp"
#include "runtime/class_registry.hpp"
#include "runtime/condemned_agents.hpp"
#include "runtime/connections.hpp"
#include "runtime/crashed_agent.hpp"
#include "runtime/durable_counts.hpp"
#include "runtime/keyed_calls.hpp"
#include "runtime/loop_timer.hpp"
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
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace hearth::runtime {

// Which of `count` shards an agent lives on in this process. A sub-agent lives with the topmost
// agent above it.
[[nodiscard]] unsigned shard_index(const storage::AgentKey& key, unsigned count);

// Threads    The loop's own; the constructor runs before the loop.
// Lifetime   The loop outlives it. If any agent was ever woken, stop() and its answer come before
//            destruction.
class Shard final : private extensions::SubAgents {
 public:
  // `index` of `count`: numbers the handles, divides the limits, and decides which agents are this
  // shard's. Throws StorageError if the directory of agents cannot be opened.
  Shard(unsigned index, unsigned count, ShardLoop& loop, const ShardEnvironment& environment,
        Metrics& metrics);
  ~Shard() override;
  Shard(const Shard&) = delete;
  Shard& operator=(const Shard&) = delete;

  // ---- what clients do ----
  // A client wants to connect. Returns its id: the members below report the client's actions with
  // that id. If the client is refused, the port is told to close.
  ConnectionId connect(const storage::AgentKey& key, std::string_view segment,
                       ConnectRequest request, std::unique_ptr<ConnectionPort> port);
  // A frame that does not belong to the protocol.
  void message(ConnectionId id, std::string_view payload, FrameKind kind);
  // A method call. `arguments`: a JSON array, checked by the caller.
  void call(ConnectionId id, std::string_view method, std::string_view arguments,
            std::unique_ptr<CallSink> sink);
  // A client replaces the state (JSON, checked by the caller). The sink gets success or the error.
  // If the agent refuses, the client is sent the valid state. An empty text is refused: it stands
  // for a state that the caller cannot take.
  void write_state(ConnectionId id, std::string_view json, std::unique_ptr<CallSink> sink);
  // The socket is gone. The port is not used again, and is destroyed soon.
  void disconnected(ConnectionId id, std::uint16_t code, std::string_view reason, bool was_clean);

  // A client wants to reach `child`, right below the agent `key`. The agent allows it by succeeding
  // with a status below 400.
  void ask_for_sub_agent(const storage::AgentKey& key, std::string_view segment,
                         const storage::AgentKey& child, std::unique_ptr<RequestHead> head,
                         std::unique_ptr<CallSink> sink);

  // A method call without a connection: from another agent, for `origin` (extensions::AgentRouter),
  // or from a client over plain HTTP. `timeout`: see Interruptions. `must_exist`: kNotFound if the
  // agent has stored nothing and is not in memory.
  struct AgentCallIn {
    storage::AgentKey key;
    std::string segment;
    std::string method;
    std::string arguments;
    extensions::OriginPtr origin;
    std::chrono::milliseconds timeout{0};
    bool must_exist = false;
    // A client calls over plain HTTP. It gets the end of the answer and no parts, and `timeout` is
    // for the whole call. It may send the call again under `retry_key`.
    bool is_of_client = false;
    std::optional<extensions::CallKey> retry_key = {};
  };
  void call(const AgentCallIn& call, std::unique_ptr<CallSink> sink);
  // A notification arrives as one of the paced steps: `step` calls call(), and what that takes of
  // the loop's time counts.
  void pace(std::function<void()> step);

  // An HTTP request to an agent.
  void request(const storage::AgentKey& key, std::string_view segment, std::string_view method,
               std::string_view body, std::unique_ptr<RequestHead> head,
               std::unique_ptr<CallSink> sink);

  // ---- what the runtime does ----
  LiveAgent* find_agent(AgentHandle handle);
  // Once: refuses new work, lets running events finish until `deadline`, evicts every agent, then
  // calls `done`.
  void stop(SteadyTime deadline, std::function<void()> done);

  // Once, after the classes are loaded: from now on agents are woken when their time has come.
  void start_alarms();

  // ---- another version of a class (shard_versions.cpp) ----
  // Agents in memory with `version` leave it, for `reason`: each before its next event, and all as
  // soon as the loop has time. With `when_idle` each leaves at its next idle moment.
  void leave_version(const std::shared_ptr<const ServedClass>& version, EvictReason reason,
                     bool when_idle);
  // Agents with `version` leave it at once and suddenly, even while busy. An EVICT in progress is
  // cut off.
  void expel_version(const ServedClass& version, EvictReason reason);
  // As many live agents as the trial has places for leave now, and are woken at once on the version
  // that serves their class. With trial->only_idle, idle agents do this now, and others when they
  // become idle, while there are places.
  void try_version(const ServedClass& before, const std::shared_ptr<VersionTrial>& trial);
  // The trial is decided. If the version under trial still serves the class, events of agents that
  // failed to start on it get the error. Otherwise those agents are woken.
  void trial_is_over(std::string_view segment);
  // Agents that waited for the class go on; or (class_is_gone) their clients are told that the wait
  // is over.
  void class_is_back(std::string_view segment);
  // Looks now at the class's agents that were put off or wait for this version.
  void hurry(std::string_view segment);
  void class_is_gone(std::string_view segment);
  // Closes the clients of the class's agents, and of all agents below those.
  void end_clients(std::string_view agent_class, std::uint16_t code, std::string_view why);

  // ---- what an administrator asks (shard_admin.cpp) ----
  // What an administrator sees of an agent, which need not exist.
  struct Standing {
    AgentState state = AgentState::kCold;
    bool in_memory = false;
    std::size_t connections = 0;
    std::string version;                  // of its code, while it is in memory
    std::string sha256;                   // of its library's content then
    const ServedClass* served = nullptr;  // the same, to compare: it may be gone by now
    durable::Wake wake;                   // what the wake index says
    bool condemned = false;
    std::optional<std::int64_t> last_active_ms = {};  // Unix time, while it is in memory
  };
  [[nodiscard]] Standing standing(const storage::AgentKey& key) const;
  // What an agent waits for, but for its durable work.
  [[nodiscard]] std::vector<extensions::Wait> waits(const storage::AgentKey& key);
  // Agents with a wait that fits, in order: one of waits(), or one that the wake index knows. That
  // knows operations that are unknown, that work is dead, and of the other durable work only the
  // moment when it is due, which is the earliest one.
  [[nodiscard]] std::vector<storage::AgentKey> waiting(
      const std::function<bool(const extensions::Wait&)>& fits);
  // Names of a class's agents that are in memory or have clients: the first ones greater than
  // `after`, in byte order. Such an agent may be missing in the directory, because it has stored
  // nothing.
  [[nodiscard]] std::vector<std::string> names_in_memory(std::string_view agent_class,
                                                         std::string_view after,
                                                         std::size_t at_most) const;
  // Whether the agent is in memory or in the directory. Throws StorageError.
  [[nodiscard]] bool exists(const storage::AgentKey& key);
  // How many agents of each class are in memory.
  [[nodiscard]] std::map<std::string, std::size_t> live_by_class() const;
  // Evicts the agent; if it is starting, once it has started. Returns the state it was in. Does
  // nothing in other states.
  AgentState evict(const storage::AgentKey& key);
  // The same for any reason, with another grace; 0: at once, also if it starts or leaves.
  void evict(const storage::AgentKey& key, EvictReason reason, std::chrono::milliseconds grace);
  // Brings the agent into memory, as an event does.
  void wake(const storage::AgentKey& key, std::string_view segment);
  // What an administrator does with an agent's data: agent_visit.hpp.
  void visit(const storage::AgentKey& key, std::string_view segment, AgentVisit visit);
  // Lists an object that was never called. False: it is listed already.
  Result<bool> create_object(const storage::AgentKey& key);
  // Like a request of the agent itself (AgentContext::destroy). The destruction is certain when
  // this returns. kUnavailable: the agent is starting or leaving, or an earlier destruction waits;
  // try again.
  Result<void> destroy(const storage::AgentKey& key);

  struct Counts {
    std::size_t live = 0;
    std::size_t slots = 0;
    std::size_t connections = 0;
  };
  [[nodiscard]] Counts counts() const;

 private:
  // ---- for the alarm clock ----
  [[nodiscard]] AlarmClock::Agents alarmed_agents();
  [[nodiscard]] bool is_cold(const storage::AgentKey& key) const;
  void wake(const storage::AgentKey& key, PermitKind kind);
  // ---- SubAgents: a sub-agent lives on the same shard, and is recorded when it first starts ----
  std::vector<extensions::SubAgent> list(const storage::AgentKey& above,
                                         const storage::AgentKey& after,
                                         std::size_t limit) override;
  Result<void> destroy(const storage::AgentKey& key, extensions::AgentHandle by) override;
  // ---- for slots: ShardParts ----
  void look_at_unused(const AgentSlot& slot);
  void one_left();
  void end_below(const storage::AgentKey& key);
  void end_condemned(const storage::AgentKey& key);

  [[nodiscard]] AgentSlot* find_slot(const storage::AgentKey& key) const;
  [[nodiscard]] std::vector<AgentSlot*> slots_of(std::string_view segment) const;
  // The slots in memory, least recently used first.
  [[nodiscard]] std::vector<AgentSlot*> residents() const;
  [[nodiscard]] std::vector<AgentSlot*> residents_with(const ServedClass& version) const;
  AgentSlot& slot_for(const storage::AgentKey& key, std::string_view segment);
  // The client, if its event is to be delivered; else null.
  [[nodiscard]] Connection* client_of(ConnectionId id);
  void client_came() { steps_.client_came(); }
  void accept_request(AgentSlot& slot, Event event, std::unique_ptr<RequestHead> head,
                      std::unique_ptr<CallSink> sink);

  const unsigned index_;
  ShardLoop& loop_;
  ShardMetrics metrics_;
  DurableCounts durable_events_;
  Connections connections_;
  storage::Directory directory_;
  AgentFiles files_;
  durable::WakeIndex wakes_;
  Admission admission_;  // its residents: slots in memory
  PacedSteps steps_;     // a single call may cause any amount of them
  AlarmClock alarms_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // tasks of the loop check it
  CondemnedAgents condemned_;
  AgentHandles handles_;
  KeyedCalls keyed_calls_;
  ShardServices services_;
  bool stopping_ = false;
  LoopTimer stop_timer_;
  std::function<void()> stopped_;  // set between stop() and its answer
  const ShardParts slot_parts_;
  std::unordered_map<storage::AgentKey, std::unique_ptr<AgentSlot>> slots_;
};

}  // namespace hearth::runtime
