// What extensions may ask of a live agent: its end, and its log
// lines; and what administrators ask.
#include "base/escape.hpp"
#include "extensions/call_rules.hpp"
#include "runtime/class_registry.hpp"
#include "runtime/condemned_agents.hpp"
#include "runtime/live_agent.hpp"
#include "runtime/shard_services.hpp"

#include <utility>

namespace hearth::runtime {

extensions::EgressPtr LiveAgent::egress() const {
  return services_.classes.egress(parts_.segment);
}

Result<void> LiveAgent::evict() {
  if (shutting()) return Error{Errc::kClosing, "the agent is being evicted"};
  if (wish_ == Wish::kStay) wish_ = Wish::kLeave;
  return {};
}

Result<void> LiveAgent::destroy() {
  if (shutting()) return Error{Errc::kClosing, "the agent is being evicted"};
  if (destruction_requested()) return {};
  services_.condemned.condemn(parts_.key);
  directory_was_written();
  wish_ = Wish::kBeDestroyed;
  return {};
}

extensions::SpanSource& LiveAgent::spans() const {
  return services_.spans;
}

void LiveAgent::log(LogLevel level, std::string_view text) {
  if (!services_.logger.enabled(level)) return;
  extensions::LineOrigin whose = calls_.current();
  const std::string trace = code_.span().text();
  whose.trace = trace;
  services_.logger.write_limited(level, "agent.log", {class_->name()},
                                 extensions::agent_line(whose, {{"text", text.substr(0, 8192)}}),
                                 Logger::kWorkLimit);
}

Result<void> LiveAgent::audit(std::string_view what, std::string_view detail) {
  // The limit is for the class, because its other agents run the same code.
  const bool is_added =
      services_.logger.record_limited(LogLevel::kDebug, "agent.audit", {class_->name()},
                                      {{"class", class_->name()},
                                       {"agent", parts_.key.name},
                                       {"actor", "agent"},
                                       {"what", what},
                                       {"detail", detail}},
                                      extensions::kAuditLimit);
  if (is_added) return {};
  return Error{Errc::kLimitExceeded,
               "agents of this class have added too many entries to the audit log: a class may add "
               "10 a second"};
}

// This is no failure of the storage: for some errors SQLite undoes more than the statement
// (plugin_sql.hpp).
void LiveAgent::lose_turn() {
  calls_.write_line(
      LogLevel::kWarn, "agent.turn_lost", {class_->name()}, code_.call(),
      {{"error", "an error of the agent's SQL has undone all that this turn has written"}});
  give_up("the transaction was lost");
}

// ---- what administrators do with its data, or with that of one that is only open ----

void LiveAgent::open() {
  if (commits_.must_hold_back()) outbox_.hold_back();
  load_work(false);
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
  const auto since_ms = [&clock](std::optional<SteadyTime> since) {
    return since ? std::optional(unix_millis_of(*since, clock)) : std::nullopt;
  };
  std::vector<extensions::Wait> all = operations_.waits();
  if (lent()) all.push_back({.kind = WaitKind::kLent, .since_ms = since_ms(loan_.since())});
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
    if (client == nullptr) continue;
    const std::size_t unsent = client->port->unsent_bytes();
    const auto since = client->port->behind_since();
    if (unsent <= kMuchUnsent || !since) continue;
    all.push_back({.kind = WaitKind::kBehind,
                   .subject = client->client_id,
                   .detail = std::to_string(unsent) + " bytes",
                   .since_ms = since_ms(since)});
  }
  return all;
}

}  // namespace hearth::runtime
