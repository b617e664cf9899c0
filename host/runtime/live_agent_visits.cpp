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

std::vector<extensions::Wait> LiveAgent::waits() {
  using extensions::WaitKind;
  constexpr std::size_t kMuchUnsent = std::size_t{64} << 10;  // what a socket may well hold
  const Clock& clock = services_.loop.clock();
  std::vector<extensions::Wait> all = operations_.waits();
  if (lent()) all.push_back({.kind = WaitKind::kLent});
  calls_.for_each([&](CallId /*id*/, const Call& call) {
    // The state of the agent, and the rows of its fibers, say these.
    switch (call.kind) {
      case EventKind::kStart:
      case EventKind::kMigrate:
      case EventKind::kEvict:
      case EventKind::kFiberRecovered: return;
      default: break;
    }
    extensions::Wait wait{
        .kind = WaitKind::kCall,
        .subject = call.method.empty() ? std::string(to_string(call.kind)) : call.method};
    if (call.began != SteadyTime{}) wait.since_ms = unix_millis_of(call.began, clock);
    all.push_back(std::move(wait));
  });
  for (const ConnectionId id : clients_.all()) {
    const Connection* const client = clients_.connection(id);
    const std::size_t unsent = client == nullptr ? 0 : client->port->unsent_bytes();
    if (unsent <= kMuchUnsent) continue;
    all.push_back({.kind = WaitKind::kBehind,
                   .subject = client->client_id,
                   .detail = std::to_string(unsent) + " bytes"});
  }
  return all;
}

}  // namespace hearth::runtime
