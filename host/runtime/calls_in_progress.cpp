#include "runtime/calls_in_progress.hpp"

namespace hearth::runtime {

std::pair<CallId, CallInProgress&> CallsInProgress::begin(EventKind kind,
                                                          const extensions::Span& span) {
  const auto [id, call] = calls_.emplace();
  call.kind = kind;
  call.span = span;
  if (rule_of(kind).runs_method) ++methods_;
  return {id, call};
}

void CallsInProgress::run_alone(CallInProgress& call) {
  call.runs_alone = true;
  ++alone_;
}

void CallsInProgress::begin_work(CallInProgress& call, extensions::DueWork work) {
  call.work = std::make_unique<extensions::DueWork>(std::move(work));
  ++work_;
}

void CallsInProgress::end(CallId id, CallInProgress& call) {
  disarm_deadline(call);
  forbid_another_try(call);
  if (call.work) --work_;
  if (rule_of(call.kind).runs_method) --methods_;
  if (call.runs_alone) --alone_;
  calls_.erase(id);
}

// ---- deadlines ----------------------------------------------------------------------------------

void CallsInProgress::arm_deadline(CallInProgress& call, std::chrono::milliseconds timeout,
                                   std::function<void()> time_out) {
  disarm_deadline(call);
  if (timeout.count() <= 0) return;
  call.due = loop_.clock().steady_now() + timeout;
  call.deadline = loop_.call_at(call.due, std::move(time_out));
}

void CallsInProgress::disarm_deadline(CallInProgress& call) {
  loop_.cancel_timer(std::exchange(call.deadline, 0));
}

// ---- events that are delivered again ------------------------------------------------------------

void CallsInProgress::keep_if_interruptible(CallInProgress& call, const AgentEvent& event,
                                            bool is_idempotent) {
  if (!rule_of(event.kind).may_repeat) return;
  const bool may_begin_again =
      !rule_of(event.kind).runs_method || (call.sink && !call.part_sent && is_idempotent);
  if (!may_begin_again || call.interruptions.count >= Interruptions::kMost) return;
  OwnedEvent kept;
  kept.kind = event.kind;
  kept.connection = event.connection;
  if (event.kind == EventKind::kCall) {
    kept.name = event.name;
    kept.body = event.body;
  }
  kept.origin = call.origin;
  kept.retry_key = call.retry_key;
  kept.interruptions = call.interruptions;
  ++kept.interruptions.count;
  if (!kept.interruptions.has_due()) {
    kept.interruptions.due =
        loop_.clock().steady_now() +
        std::chrono::milliseconds(static_cast<std::int64_t>(event.deadline_ms));
  }
  // Other events have no bytes, and there is at most one for each client.
  if (kept.kind == EventKind::kCall) {
    const std::size_t bytes = text_bytes(kept);
    if (kept_ >= max_kept_ || bytes > max_kept_bytes_ - held_.bytes()) return;
    if (memory_.refuses(held_.bytes() + bytes)) return;
    ++kept_;
    held_.set(held_.bytes() + bytes);
  }
  call.copy = std::make_unique<OwnedEvent>(std::move(kept));
  call.copied = ++last_copy_;
}

void CallsInProgress::release(const OwnedEvent& copy) {
  if (copy.kind != EventKind::kCall) return;
  --kept_;
  held_.set(held_.bytes() - text_bytes(copy));
}

void CallsInProgress::forbid_another_try(CallInProgress& call) {
  if (const auto copy = std::move(call.copy)) release(*copy);
}

bool CallsInProgress::interrupt(CallInProgress& call) {
  if (!call.copy) return false;
  call.copy->sink = std::move(call.sink);
  interrupted_.emplace(call.copied, std::move(*call.copy));
  call.copy.reset();
  return true;
}

std::vector<OwnedEvent> CallsInProgress::take_interrupted() {
  std::vector<OwnedEvent> taken;
  for (auto& [number, event] : std::exchange(interrupted_, {})) {
    release(event);
    taken.push_back(std::move(event));
  }
  return taken;
}

}  // namespace hearth::runtime
