#pragma once
// The events that wait for one agent.

#include "base/client_memory.hpp"
#include "base/error.hpp"
#include "runtime/class_settings.hpp"
#include "runtime/connections.hpp"
#include "runtime/event.hpp"

#include <cstddef>
#include <list>
#include <optional>
#include <utility>
#include <vector>

namespace hearth::runtime {

// It says in which order events leave, never when: that is for its agent.
//
// Promises
//  P1 Order     push() adds at the end, put_back() in front of all. What is taken out leaves the
//               order of the others as it is.
//  P2 Bounded   At most max_waiting calls and requests wait, with at most max_waiting_bytes in all
//               names, bodies and claims. More are answered kUnavailable. What only the host sends
//               is never refused.
//  P3 Pause     A client with much waiting is not read from until little of it waits.
//  P4 Account   The bytes are on the account of client memory. While that is overdrawn, large
//               events of clients are refused: a call is answered, the client of a frame or of a
//               CONNECT is ended with 1013. What counts as large is the event with the head of its
//               request, and what the queue and Connections hold of its client.
//
// Threads    The shard's.
// Lifetime   The clients, the memory and the limits outlive it.
class EventQueue {
 public:
  EventQueue(Connections& clients, ClientMemory& memory, const RuntimeLimits& limits)
      : clients_(clients), limits_(limits), memory_(memory), held_(memory) {}

  void push(Event event);
  // Events that were begun and come again. A call beyond the bounds is answered `no_room`.
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

  [[nodiscard]] bool empty() const { return events_.empty(); }
  [[nodiscard]] std::size_t size() const { return events_.size(); }
  // Whether the end of this client waits to be told.
  [[nodiscard]] bool has_close_of(ConnectionId client) const;
  // When the time of the first event that has one is over; SteadyTime::max(): none has.
  [[nodiscard]] SteadyTime next_due() const;

  // What is stored was stored by an instance that is gone: the next one undoes none of it.
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
  std::size_t timed_ = 0;  // events that have a time
};

}  // namespace hearth::runtime
