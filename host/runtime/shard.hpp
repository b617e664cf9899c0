#pragma once
// All agents that live on one loop, and their clients.

#include "durable/wake_index.hpp"
#include "runtime/admission.hpp"
#include "runtime/agent_slots.hpp"
#include "runtime/alarm_clock.hpp"
#include "runtime/condemned_agents.hpp"
#include "runtime/connections.hpp"
#include "runtime/durable_counts.hpp"
#include "runtime/keyed_calls.hpp"
#include "runtime/paced_steps.hpp"
#include "runtime/shard_admin.hpp"
#include "runtime/shard_metrics.hpp"
#include "runtime/shard_services.hpp"
#include "runtime/shard_sub_agents.hpp"
#include "runtime/shard_versions.hpp"
#include "storage/directory.hpp"
#include "telemetry/metrics.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace hearth::runtime {

// Which of `count` shards an agent lives on in this process. A sub-agent lives with the topmost
// agent above it.
[[nodiscard]] unsigned shard_index(const storage::AgentKey& key, unsigned count);

// Threads    The loop's own; the constructor runs before the loop.
// Lifetime   The loop outlives it. If any agent was ever woken, stop() and its answer come before
//            destruction.
class Shard {
 public:
  // `index` of `count`: numbers the handles, divides the limits, and decides which agents are this
  // shard's. Throws StorageError if the directory of agents cannot be opened.
  Shard(unsigned index, unsigned count, ShardLoop& loop, const ShardEnvironment& environment,
        Metrics& metrics);
  ~Shard();
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

  // Whether the agent is in memory or in the directory. Throws StorageError.
  [[nodiscard]] bool exists(const storage::AgentKey& key);

  // ---- what the runtime does ----
  LiveAgent* find_agent(AgentHandle handle) { return slots_.find(handle); }
  // As AgentSlots.
  void stop(SteadyTime deadline, std::function<void()> done);
  // Once, after the classes are loaded: from now on agents are woken when their time has come.
  void start_alarms();
  [[nodiscard]] ShardAdmin& admin() { return admin_; }
  [[nodiscard]] ShardVersions& versions() { return versions_; }

  struct Counts {
    std::size_t live = 0;
    std::size_t slots = 0;
    std::size_t connections = 0;
  };
  [[nodiscard]] Counts counts() const;

 private:
  void accept_request(AgentSlot& slot, Event event, std::unique_ptr<RequestHead> head,
                      std::unique_ptr<CallSink> sink);

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
  KeyedCalls keyed_calls_;
  ShardServices services_;
  ShardSubAgents sub_agents_;
  AgentSlots slots_;
  ShardAdmin admin_;
  ShardVersions versions_;
};

}  // namespace hearth::runtime
