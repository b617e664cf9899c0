#pragma once
// The clients of one agent and the events that wait for it. They stay while the agent comes and
// goes.

#include "base/client_memory.hpp"
#include "base/error.hpp"
#include "base/logger.hpp"
#include "runtime/class_settings.hpp"
#include "runtime/connections.hpp"
#include "runtime/event_queue.hpp"
#include "runtime/loop_timer.hpp"
#include "runtime/types.hpp"
#include "storage/agent_key.hpp"

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

namespace hearth::runtime {

// It does not look at the agent's state: AgentSlot makes the calls that the state requires.
//
// Promises
//  P1 Told       An event that is refused or times out is answered once: a call or request through
//                its sink, a frame without a sink by closing its client.
//  P2 Timed      A waiting event with a time limit is given up when that is over, and a timer then
//                calls `expired`.
//  P3 All closed A client that has left is forgotten with its CLOSE, whether that was delivered or
//                refused.
//
// put_back() adds its events in front of all others.
//
// Threads    The shard's.
// Lifetime   The key and all parts outlive it.
class AgentInbox {
 public:
  struct Parts {
    Connections& connections;
    ClientMemory& client_memory;
    const RuntimeLimits& limits;
    ShardLoop& loop;
    Logger& logger;
  };
  // `expired`: waiting events have timed out and were removed.
  AgentInbox(const storage::AgentKey& key, const Parts& parts, std::function<void()> expired);

  // ---- clients ----
  // In the order of arrival.
  [[nodiscard]] const std::vector<ConnectionId>& clients() const { return clients_; }
  void add(ConnectionId id);
  // Null: this agent has no such client.
  [[nodiscard]] Connection* client(ConnectionId id) const;
  // Destroys the client's port.
  void forget(ConnectionId id);
  // Closes all clients that are still there.
  void end_clients(std::uint16_t code, std::string_view why);
  // The agent was destroyed: ends the clients and events that it knew. Others came too late to be
  // known, and wait for the next agent.
  void part_with_known(const Error& gone);
  // An instance is gone: forgets clients that had left. Ends clients whose CONNECT was in progress
  // and is not delivered again.
  void part_with_unfinished();

  // ---- events ----
  [[nodiscard]] EventQueue& queue() { return queue_; }
  [[nodiscard]] const EventQueue& queue() const { return queue_; }
  [[nodiscard]] bool empty() const { return queue_.empty(); }
  void push(Event event);
  // Takes the events that an eviction for `reason` cut off. A call that finds no room gets
  // `no_room`.
  void put_back(std::vector<OwnedEvent> events, EvictReason reason, const Error& no_room);
  // The instance has rolled back its writes of the state after this one: drops their events.
  void undo_states(std::uint64_t last_write);
  // The event was taken out because it has timed out: answers it, or closes its client.
  void give_up(const OwnedEvent& event);
  // Refuses all waiting events.
  void refuse_all(const Error& error, std::uint16_t close_code);
  // Refuses requests, and clients that no instance has let in. The events of other clients still
  // wait, CLOSE included.
  void refuse_strangers(const Error& error, std::uint16_t close_code);

 private:
  [[nodiscard]] Connection* find(ConnectionId id) const { return parts_.connections.find(id); }
  void refuse(const std::vector<OwnedEvent>& events, const Error& error, std::uint16_t close_code);
  void part_with_unconnected(Connection& client);
  void watch_timed();
  void expire_timed();

  const storage::AgentKey& key_;
  const Parts parts_;
  const std::function<void()> expired_;
  EventQueue queue_;
  std::vector<ConnectionId> clients_;
  SteadyTime watched_ = SteadyTime::max();  // when the first event of queue_ times out
  LoopTimer timed_timer_;                   // ... the timer for it
};

}  // namespace hearth::runtime
