// Events that are delivered again if the agent is evicted before they end. See
// interruptible_events.hpp and promise P6 of AgentSlot.
#include "runtime/live_agent.hpp"
#include "runtime/shard_services.hpp"

#include <algorithm>
#include <utility>

namespace hearth::runtime {
namespace {

// Whether the agent returns for its events. A hung agent does not get the events again that may
// have hung it.
bool comes_back_after(EvictReason reason) {
  return reason != EvictReason::kShutdown && reason != EvictReason::kDestroyed &&
         reason != EvictReason::kHung;
}

}  // namespace

std::chrono::milliseconds LiveAgent::call_timeout() const {
  const std::chrono::milliseconds own = settings().call_timeout;
  return own.count() > 0 ? own : services_.limits().call_timeout;
}

std::chrono::milliseconds LiveAgent::time_for(const Interruptions& interruptions) const {
  if (!interruptions.has_due()) return call_timeout();
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(
      interruptions.due - services_.loop().clock().steady_now());
  return std::max(left, std::chrono::milliseconds(1));  // 0 would mean no limit
}

void LiveAgent::keep_if_interruptible(Call& call, const AgentEvent& event) {
  if (!rule_of(event.kind).may_repeat) return;
  const bool may_begin_again = !rule_of(event.kind).runs_method ||
                               (call.sink && !call.part_sent && class_->is_idempotent(event.name));
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
        services_.loop().clock().steady_now() +
        std::chrono::milliseconds(static_cast<std::int64_t>(event.deadline_ms));
  }
  call.kept = interruptible_.keep(std::move(kept));
}

void LiveAgent::forbid_another_try(Call& call) {
  interruptible_.drop(std::exchange(call.kept, 0));
}

bool LiveAgent::may_try_again(EvictReason reason) const {
  return comes_back_after(reason) && !broken_ && phase_ != AgentPhase::kMigrating &&
         !destruction_requested();
}

bool LiveAgent::interrupt(Call& call) {
  if (call.kept == 0) return false;
  const Connection* client = clients_.connection(call.connection);
  const bool can_read = call.connection == 0 || (client != nullptr && !client->closing);
  const bool anybody_waits = (call.kind != EventKind::kCall || call.sink != nullptr) && can_read;
  if (!anybody_waits) return false;
  interruptible_.interrupt(std::exchange(call.kept, 0), std::move(call.sink));
  return true;
}

}  // namespace hearth::runtime
