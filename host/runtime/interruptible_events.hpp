#pragma once
// Events in progress that are delivered again if an eviction cuts them off. Their callers only
// notice a longer wait.

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
//            P2 Bounded   It keeps at most max_events calls, with at most max_bytes in their names,
//                         bodies and claims, which are on the account of client memory.
// Bounds     An event beyond these bounds, or while that account is overdrawn, is not kept: it is
//            not delivered again.
// Threads    None of its own.
class InterruptibleEvents {
 public:
  using Place = std::uint64_t;  // 0: none

  // The memory outlives it.
  InterruptibleEvents(ClientMemory& memory, std::size_t max_events, std::size_t max_bytes)
      : max_events_(max_events), max_bytes_(max_bytes), memory_(memory), held_(memory) {}

  // The event has begun. 0: there was no room.
  Place keep(OwnedEvent event);
  // The event is over, or may not be delivered again. `place` 0: does nothing.
  void drop(Place place);
  // The event was cut off; `sink` waits for the answer of the next delivery.
  void interrupt(Place place, std::shared_ptr<CallSink> sink);
  // Moves out the events that were cut off, and drops the others.
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
  HeldBytes held_;         // for kept_
  Place last_ = 0;
};

}  // namespace hearth::runtime
