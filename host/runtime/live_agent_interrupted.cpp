// Events that are delivered again if the agent is evicted before they end. See
// interruptible_events.hpp and promise P6 of AgentSlot.
#include "runtime/live_agent.hpp"
#include "runtime/shard_services.hpp"

#include <algorithm>

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
  return own.count() > 0 ? own : services_.limits.call_timeout;
}

std::chrono::milliseconds LiveAgent::time_for(const Interruptions& interruptions) const {
  if (!interruptions.has_due()) return call_timeout();
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(
      interruptions.due - services_.loop.clock().steady_now());
  return std::max(left, std::chrono::milliseconds(1));  // 0 would mean no limit
}

bool LiveAgent::may_try_again(EvictReason reason) const {
  return comes_back_after(reason) && !broken_ && phase_ != AgentPhase::kMigrating &&
         !destruction_requested();
}

bool LiveAgent::cut_off(Call& call) {
  const Connection* client = clients_.connection(call.connection);
  const bool can_read = call.connection == 0 || (client != nullptr && !client->closing);
  const bool is_waited_for = (call.kind != EventKind::kCall || call.sink != nullptr) && can_read;
  return is_waited_for && calls_.interrupt(call);
}

}  // namespace hearth::runtime
