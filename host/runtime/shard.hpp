#pragma once
// All agents that live on one loop, and their clients.

#include "base/logger.hpp"
#include "base/random.hpp"
#include "base/slot_map.hpp"
#include "durable/wake_index.hpp"
#include "runtime/agent_slot.hpp"
#include "runtime/blocking_pool.hpp"
#include "runtime/class_registry.hpp"
#include "runtime/connection.hpp"
#include "runtime/shard_services.hpp"
#include "storage/directory.hpp"

#include <chrono>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <unordered_map>

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
  Logger& logger;
  Random& random;
  std::function<std::string(std::string_view state_json)> state_frame;
};

// Threads    The loop's own, but for the constructor.
// Lifetime   The loop outlives it. stop() and its answer come before destruction, unless nothing was ever woken.
class Shard final : private ShardServices {
 public:
  // `index` of `count`: numbers the handles, divides the limits, and says which agents are this shard's. Throws StorageError
  // if the directory of agents cannot be opened.
  Shard(unsigned index, unsigned count, ShardLoop& loop, const ShardEnvironment& environment);
  ~Shard() override;

  // ---- what clients do ----
  // A client wants in. The result is its id from now on; news of it come through the members below. If it cannot
  // be let in, the port is told to close.
  ConnectionId connect(const storage::AgentKey& key, std::string_view segment,
                       ConnectRequest request, std::unique_ptr<ConnectionPort> port);
  // A frame that is none of the protocol's.
  void message(ConnectionId id, std::string_view payload, FrameKind kind);
  // A method call. `arguments`: JSON array, checked by the caller.
  void call(ConnectionId id, std::string_view method, std::string_view arguments,
            std::unique_ptr<CallSink> sink);
  // A client replaces the state (JSON, checked by the caller). The sink hears of success or of the reason.
  void write_state(ConnectionId id, std::string_view json, std::unique_ptr<CallSink> sink);
  // The socket is gone. The port is not used again, and destroyed soon.
  void disconnected(ConnectionId id, std::uint16_t code, std::string_view reason, bool was_clean);

  // An HTTP request to an agent.
  void request(const storage::AgentKey& key, std::string_view segment, std::string_view method,
               std::string_view body, std::unique_ptr<RequestHead> head,
               std::unique_ptr<CallSink> sink);

  // ---- what the runtime does ----
  LiveAgent* find_agent(AgentHandle handle);
  // Refuses new work, lets running events finish until `deadline`, evicts everything, then calls `done`. Once.
  void stop(SteadyTime deadline, std::function<void()> done);

  // From now on agents are woken when their time has come. Once; the classes are loaded.
  void start_alarms();

  struct Counts {
    std::size_t live = 0;
    std::size_t slots = 0;
    std::size_t connections = 0;
  };
  [[nodiscard]] Counts counts() const;

 private:
  friend class AgentSlot;

  // ShardServices
  ShardLoop& loop() override { return loop_; }
  Logger& logger() override { return environment_.logger; }
  [[nodiscard]] const RuntimeLimits& limits() const override { return environment_.limits; }
  [[nodiscard]] std::filesystem::path database_path(const storage::AgentKey& key) const override;
  void record_agent(const storage::AgentKey& key) override;
  Connection* find_connection(ConnectionId id) override { return connections_.find(id); }
  std::string state_frame(std::string_view state_json) override;
  bool run_job(std::shared_ptr<const AgentClass> agent_class, std::uint64_t job,
               std::shared_ptr<std::atomic<bool>> abandoned,
               std::function<void(Result<void>)> done) override;
  void after_turn(AgentSlot& slot) override { slot.after_turn(); }

  Random& random() override { return environment_.random; }
  [[nodiscard]] durable::Wake known_wake(const storage::AgentKey& key) const override {
    return wakes_.find(key);
  }
  void set_wake(const storage::AgentKey& key, const durable::Wake& wake) override;

  // ---- alarms and recovery: at most max_recovering_ agents at once have a permit ----
  void ask_to_recover(AgentSlot& slot);
  void recover_now(const storage::AgentKey& key);
  void give_back_permit(AgentSlot& slot);
  // The agent could not be woken: again after `wait`, if it must be awake at all.
  void look_again(AgentSlot& slot, std::chrono::milliseconds wait);
  // The agent is cold: when must it be awake next? Not before `at_least` from now.
  void rest(AgentSlot& slot, const durable::Wake& wake, std::chrono::milliseconds at_least);
  void run_alarms();
  void arm_alarm();

  AgentSlot& slot_for(const storage::AgentKey& key, std::string_view segment);
  // Room for one more live agent: evicts the least recently used idle one if need be. False: all are busy.
  bool make_room();
  AgentHandle admit(AgentSlot& slot);
  void release(AgentSlot& slot);
  // Removes the slot soon, if it is still of no use then.
  void remove_if_unused(AgentSlot& slot);
  void check_stopped();

  const unsigned index_;
  const std::size_t max_live_;
  const std::size_t max_recovering_;
  ShardLoop& loop_;
  ShardEnvironment environment_;
  storage::Directory directory_;
  durable::WakeIndex wakes_;
  bool alarms_started_ = false;
  TimerId alarm_ = 0;
  std::size_t recovering_ = 0;
  std::deque<storage::AgentKey> want_permit_;
  std::unordered_map<storage::AgentKey, std::unique_ptr<AgentSlot>> slots_;
  SlotMap<Connection> connections_;
  SlotMap<AgentSlot*> handles_;
  std::list<AgentSlot*> recent_;  // slots that are not cold, least recently used first
  bool stopping_ = false;
  TimerId stop_timer_ = 0;
  std::function<void()> stopped_;                               // set between stop() and its answer
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // tasks of the loop check it
};

}  // namespace hearth::runtime
