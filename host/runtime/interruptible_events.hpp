#pragma once
// Events in progress that are delivered again if the agent is evicted in their middle, so that the
// caller notices nothing but the wait.

#include "base/client_memory.hpp"
#include "runtime/call_sink.hpp"
#include "runtime/event.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

namespace hearth::runtime {

// Copies of such events, as long as they are in progress.
//
// Promises   P1 Order     take_interrupted() gives them in the order in which keep() was called.
//            P2 Bounded   At most max_events calls, with at most max_bytes in their names, bodies
//                         and claims, which are on the account of client memory. One that has no
//                         place, or comes while that account is overdrawn, is not kept, which costs
//                         it nothing but the second delivery.
// Threads    None of its own.
class InterruptibleEvents {
 public:
  using Place = std::uint64_t;  // 0: none

  // The memory outlives it.
  InterruptibleEvents(ClientMemory& memory, std::size_t max_events, std::size_t max_bytes)
      : max_events_(max_events), max_bytes_(max_bytes), memory_(memory), held_(memory) {}

  // It has begun. 0: there was no room.
  Place keep(OwnedEvent event);
  // It is over, or may not be delivered again any more. 0 is no place.
  void drop(Place place);
  // It was cut off; `sink` waits for the answer of the next try.
  void interrupt(Place place, std::shared_ptr<CallSink> sink);
  // Those that were cut off. Nothing is left here.
  [[nodiscard]] std::vector<OwnedEvent> take_interrupted();

 private:
  struct Kept {
    OwnedEvent event;
    bool interrupted = false;
  };
  const std::size_t max_events_;
  const std::size_t max_bytes_;
  ClientMemory& memory_;
  std::map<Place, Kept> kept_;
  std::size_t calls_ = 0;  // in kept_
  HeldBytes held_;         // in them
  Place last_ = 0;
};

}  // namespace hearth::runtime
