#include "runtime/interruptible_events.hpp"

#include "base/assert.hpp"

#include <utility>

namespace hearth::runtime {
InterruptibleEvents::Place InterruptibleEvents::keep(OwnedEvent event) {
  // Other events have no bytes, and there is at most one for each client.
  if (event.kind == EventKind::kCall) {
    const std::size_t bytes = text_bytes(event);
    if (calls_ >= max_events_ || bytes > max_bytes_ - held_.bytes()) return 0;
    if (memory_.refuses(held_.bytes() + bytes)) return 0;
    ++calls_;
    held_.set(held_.bytes() + bytes);
  }
  kept_.try_emplace(++last_, Kept{std::move(event)});
  return last_;
}

void InterruptibleEvents::drop(Place place) {
  if (place == 0) return;
  const auto found = kept_.find(place);
  HEARTH_ASSERT(found != kept_.end(), "an event is dropped that is not kept");
  const OwnedEvent& event = found->second.event;
  if (event.kind == EventKind::kCall) {
    --calls_;
    held_.set(held_.bytes() - text_bytes(event));
  }
  kept_.erase(found);
}

void InterruptibleEvents::interrupt(Place place, std::shared_ptr<CallSink> sink) {
  const auto found = kept_.find(place);
  HEARTH_ASSERT(found != kept_.end(), "an event is interrupted that is not kept");
  found->second.event.sink = std::move(sink);
  found->second.interrupted = true;
}

std::vector<OwnedEvent> InterruptibleEvents::take_interrupted() {
  std::vector<OwnedEvent> taken;
  for (auto& [place, kept] : std::exchange(kept_, {})) {
    if (kept.interrupted) taken.push_back(std::move(kept.event));
  }
  calls_ = 0;
  held_.set(0);
  return taken;
}

}  // namespace hearth::runtime
