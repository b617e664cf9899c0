#pragma once
// The clients of one agent, and the events that wait for it: what stays while the agent comes and
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

// It does not look at the agent's state: AgentSlot calls what that asks for.
//
// Promises
//  P1 Told        An event that is refused or given up is told once: a call or request through its
//                 sink, a frame without a sink by closing its client.
//  P2 Timed       An event that has a time waits until that is over: then it is given up, and
//                 `expired` is called, from a timer. What put_back() takes waits in front of all
//                 else.
//  P3 All closed  A client that has left is forgotten with its CLOSE, whether that was delivered or
//                 refused.
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
  // `expired`: events were taken out because their time was over.
  AgentInbox(const storage::AgentKey& key, const Parts& parts, std::function<void()> expired);

  // ---- clients ----
  // In the order of arrival.
  [[nodiscard]] const std::vector<ConnectionId>& clients() const { return clients_; }
  void add(ConnectionId id) { clients_.push_back(id); }
  // Its port is destroyed.
  void forget(ConnectionId id);
  // Closes all clients that are still there.
  void end_clients(std::uint16_t code, std::string_view why);
  // The agent was destroyed: ends what it knew, clients and events. What came too late for it to
  // know waits for the next one.
  void part_with_known(const Error& gone);
  // An instance is gone: forgets clients that had left, and ends those that it did not finish to
  // connect and that do not come again.
  void part_with_unfinished();

  // ---- events ----
  [[nodiscard]] EventQueue& queue() { return queue_; }
  [[nodiscard]] const EventQueue& queue() const { return queue_; }
  [[nodiscard]] bool empty() const { return queue_.empty(); }
  void push(Event event);
  // What the instance was cut off from, for `reason`. An event that finds no room is answered
  // `no_room`.
  void put_back(std::vector<OwnedEvent> events, EvictReason reason, const Error& no_room);
  // The event was taken out, and will not be delivered again.
  void give_up(const OwnedEvent& event);
  // Tells all that wait that they wait in vain.
  void refuse_all(const Error& error, std::uint16_t close_code);
  // Refuses requests, and clients that no instance has let in. What clients that are let in have
  // sent goes on waiting, and that they have left.
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
  SteadyTime watched_ = SteadyTime::max();  // when the time of the first of queue_ is over
  LoopTimer timed_timer_;                   // ... then
};

}  // namespace hearth::runtime
