#pragma once
// The events that wait for one agent.

#include "base/client_memory.hpp"
#include "base/error.hpp"
#include "runtime/class_settings.hpp"
#include "runtime/connections.hpp"
#include "runtime/event.hpp"

#include <algorithm>
#include <cstddef>
#include <list>
#include <optional>
#include <utility>
#include <vector>

namespace hearth::runtime {

// The queue decides the order in which events leave; its agent decides when.
//
// Promises
//  P1 Order    push() adds at the end and put_back() in front; taking an event out leaves the order
//              of the others as it is.
//  P2 Bounded  At most max_waiting calls and requests wait, with at most max_waiting_bytes in
//              names, bodies and claims; further ones are answered kUnavailable.
//  P3 Pause    A client with many waiting events is not read until few of them wait.
//  P4 Account  The bytes are on the account of client memory, and while that is overdrawn, large
//              events of clients are refused.
//
// P2: Events that only the host sends are never refused.
// P4: A refused call is answered; the client of a refused frame or CONNECT is closed with 1013. The
// size of an event includes the head of its request, and all that the queue and Connections hold
// for its client.
//
// Threads    The shard's.
// Lifetime   The clients, the memory and the limits outlive it.
class EventQueue {
 public:
  EventQueue(Connections& clients, ClientMemory& memory, const RuntimeLimits& limits)
      : clients_(clients), limits_(limits), memory_(memory), held_(memory) {}

  void push(Event event);
  // Adds events that were begun and are delivered again. A call beyond the bounds gets `no_room`.
  void put_back(std::vector<OwnedEvent> events, const Error& no_room);

  // Takes out the first event for which `may` is true, or nothing.
  template <class Predicate>
  std::optional<OwnedEvent> take_first(Predicate may) {
    for (auto at = events_.begin(); at != events_.end(); ++at) {
      if (may(std::as_const(*at))) return take(at);
    }
    return std::nullopt;
  }
  // Takes out all events for which `is_meant` is true, in order.
  template <class Predicate>
  std::vector<OwnedEvent> take_if(Predicate is_meant) {
    std::vector<OwnedEvent> taken;
    for (auto at = events_.begin(); at != events_.end();) {
      const auto next = std::next(at);
      if (is_meant(std::as_const(*at))) taken.push_back(take(at));
      at = next;
    }
    return taken;
  }

  template <class Predicate>
  [[nodiscard]] bool contains(Predicate is_meant) const {
    return std::ranges::any_of(events_, is_meant);
  }
  [[nodiscard]] bool empty() const { return events_.empty(); }
  [[nodiscard]] std::size_t size() const { return events_.size(); }
  // Whether a CLOSE of this client waits.
  [[nodiscard]] bool has_close_of(ConnectionId client) const;
  // When the first waiting event times out; SteadyTime::max(): no event has a time limit.
  [[nodiscard]] SteadyTime next_due() const;

  // The instance that wrote the state is gone: the next instance undoes none of its writes.
  void forget_state_writes();

 private:
  [[nodiscard]] bool has_room_for(std::size_t bytes) const;
  [[nodiscard]] bool refuses_memory(const Event& event, std::size_t bytes) const;
  void refuse_for_memory(const Event& event);
  void add(std::list<OwnedEvent>::iterator before, OwnedEvent event, bool is_full);
  OwnedEvent take(std::list<OwnedEvent>::iterator at);

  Connections& clients_;
  const RuntimeLimits& limits_;
  ClientMemory& memory_;
  std::list<OwnedEvent> events_;
  HeldBytes held_;         // in events_
  std::size_t timed_ = 0;  // events with a time limit
};

}  // namespace hearth::runtime
