#pragma once
// What is in progress and is delivered again if the agent is evicted in its middle, so that whoever waits for it notices
// nothing but the wait.

#include "base/clock.hpp"
#include "runtime/call_sink.hpp"
#include "runtime/types.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace hearth::runtime {

// How an event came to be delivered again.
struct Interruptions {
  // More often an event is not delivered again: an agent whose own event evicts it each time would never come to rest.
  static constexpr unsigned kMost = 32;

  unsigned count = 0;  // so often it was begun and cut off
  SteadyTime due;      // when its time is over, counted from its first delivery. Only if count > 0
};

// An event without its agent.
struct InterruptedEvent {
  EventKind kind{};  // kConnect or kCall
  ConnectionId connection = 0;
  std::string name;  // of kCall
  std::string body;
  std::shared_ptr<CallSink> sink;  // of kCall: who waits for the answer
  Interruptions interruptions;
};

// Copies of such events, as long as they are in progress.
//
// Promises   P1 Order     take_interrupted() gives them in the order in which keep() was called.
//            P2 Bounded   At most max_events calls, with at most max_bytes in their names and bodies. One that has no place is
//                         not kept, which costs it nothing but the second delivery.
// Threads    None of its own.
class InterruptibleEvents {
 public:
  using Place = std::uint64_t;  // 0: none

  InterruptibleEvents(std::size_t max_events, std::size_t max_bytes)
      : max_events_(max_events), max_bytes_(max_bytes) {}

  // It has begun. 0: there was no room.
  Place keep(InterruptedEvent event);
  // It is over, or may not be delivered again any more. 0 is nobody's.
  void drop(Place place);
  // It was cut off; `sink` waits for the answer of the next try.
  void interrupt(Place place, std::shared_ptr<CallSink> sink);
  // Those that were cut off. Nothing is left here.
  [[nodiscard]] std::vector<InterruptedEvent> take_interrupted();

 private:
  struct Kept {
    InterruptedEvent event;
    bool interrupted = false;
  };
  const std::size_t max_events_;
  const std::size_t max_bytes_;
  std::map<Place, Kept> kept_;
  std::size_t calls_ = 0;  // in kept_
  std::size_t bytes_ = 0;  // in them
  Place last_ = 0;
};

}  // namespace hearth::runtime
