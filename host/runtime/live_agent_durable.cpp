// When a live agent must be awake, and which durable work it finds.
#include "runtime/live_agent.hpp"
#include "runtime/shard_services.hpp"

namespace hearth::runtime {

durable::Wake LiveAgent::wake() const {
  if (work_waits_for_room_) return services_.alarms.known(parts_.key);
  durable::Wake wake = work_.wake();
  wake.working = wake.working || extensions().keeps_alive();
  return wake;
}

void LiveAgent::commit_now() {
  if (!broken_) commit();
  if (broken_) throw StorageError(*broken_);  // nothing is written any more
}

void LiveAgent::report_left_over() {
  for (const durable::LeftOver& fiber : work_.fibers().take_left_over()) {
    using extensions::DurableEvent;
    const UnderSpan under(code_, span_of_left_over(fiber.id));
    if (fiber.was_running) work_.report(DurableEvent::kFiberRunInterrupted, fiber.id, fiber.name);
    work_.report(DurableEvent::kFiberRecoveryDetected, fiber.id, fiber.name);
  }
}

// The span under which the fiber was begun, not the one of the start that finds it.
LiveAgent::Span LiveAgent::span_of_left_over(std::string_view fiber) {
  Span span;
  guard([&] { span = extensions::read_span(work_.trace_of_fiber(fiber)); });
  return span;
}

}  // namespace hearth::runtime
