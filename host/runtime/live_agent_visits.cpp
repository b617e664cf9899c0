// What administrators do with the data of a live agent, or of one that is only open.
#include "runtime/live_agent.hpp"
#include "runtime/shard_services.hpp"

#include <utility>

namespace hearth::runtime {

void LiveAgent::open() {
  if (commits_.must_hold_back()) outbox_.hold_back();
  load_work();
}

void LiveAgent::receive(AgentVisit& visit) {
  visit.is_over = true;
  if (loan_.postpone([this, later = visit]() mutable { receive(later); })) return;
  Result<std::string> outcome = Error{Errc::kUnavailable, "the agent is leaving memory; try again"};
  if (!shutting() && !broken_) {
    const bool is_done = guard([&] { outcome = visit.work(*this); });
    if (!is_done) outcome = Error{Errc::kInternal, "the agent's storage failed"};
  }
  outbox_.push(FinishEffect{visit.sink, 0, {}, std::move(outcome)});
  leave();
}

}  // namespace hearth::runtime
