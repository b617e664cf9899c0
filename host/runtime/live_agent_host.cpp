// What extensions may ask of a live agent: its calls, its end, and its log lines.
#include "base/escape.hpp"
#include "extensions/call_rules.hpp"
#include "runtime/class_registry.hpp"
#include "runtime/condemned_agents.hpp"
#include "runtime/live_agent.hpp"
#include "runtime/shard_services.hpp"

#include <utility>

namespace hearth::runtime {
namespace {

Error gone(std::string_view what) {
  return Error{Errc::kNotFound, "no such " + std::string(what)};
}

}  // namespace

extensions::EgressPtr LiveAgent::egress() const {
  return parts_.classes.egress(parts_.segment);
}

Result<void> LiveAgent::complete(CallId id, const Result<std::string_view>& outcome) {
  if (id == 0 && outcome.has_error()) {
    refusal_text_ = cut_text(outcome.error().message, extensions::kMaxErrorBytes);
    return {};
  }
  Call* call = calls_.find(id);
  if (call == nullptr) return gone("call: it was completed, cancelled or timed out");
  // Durable work ends by writing rows. A rollback would undo them, while memory says that the work
  // is done.
  if (call->work && in_transaction()) {
    return Error{Errc::kInvalidArgument, "not while a transaction of the agent's own is open"};
  }
  const extensions::Answer answer =
      extensions::judge_answer(call->kind, outcome, services_.limits.max_answer_bytes);
  finish(id, *call, answer.outcome);
  return answer.returned;
}

Result<void> LiveAgent::emit(CallId id, std::string_view part) {
  Call* call = calls_.find(id);
  if (call == nullptr) return gone("call");
  if (Result<void> taken =
          extensions::check_part(call->kind, part, services_.limits.max_answer_bytes);
      taken.has_error())
    return taken;
  const bool left = call->connection != 0 && clients_.connection(call->connection) == nullptr;
  if (!call->sink || left || call->sink->abandoned()) return gone("caller: the client has left");
  call->part_sent = true;
  calls_.forbid_another_try(*call);
  if (call->deadline != 0 && !call->interruptions.reads_no_parts)
    arm_deadline(id, *call, call->timeout);
  if (outbox_.open()) {
    call->sink->part(call->head, part);
  } else {
    outbox_.push(PartEffect{call->sink, call->connection, call->head, std::string(part)});
  }
  return {};
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

extensions::LineOrigin LiveAgent::current() const {
  return {.agent_class = class_->name(),
          .agent = parts_.key.name,
          .call = code_.call(),
          .method = code_.method()};
}

void LiveAgent::write_line(LogLevel level, std::string_view event,
                           std::initializer_list<std::string_view> kind, CallId id,
                           std::initializer_list<LogField> own) const {
  if (!services_.logger.enabled(level)) return;
  const Call* const call = calls_.find(id);
  const std::string trace = (call != nullptr ? call->span : code_.span()).text();
  extensions::LineOrigin whose = current();
  if (call != nullptr) {
    whose.call = id;
    whose.method = call->method;
  }
  whose.trace = trace;
  services_.logger.write_limited(level, event, kind, extensions::agent_line(whose, own));
}

void LiveAgent::log(LogLevel level, std::string_view text) {
  if (!services_.logger.enabled(level)) return;
  extensions::LineOrigin whose = current();
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

// An error with another code is the author's answer to the client, and is not logged.
void LiveAgent::tell_failure(CallId id, const Call& call, const Error& error) const {
  if (!answers_client(call.kind) || error.code != Errc::kPlugin) return;
  write_line(LogLevel::kWarn, "agent.call_failed", {class_->name()}, id,
             {{"event_kind", to_string(call.kind)}, {"error", error.message}});
}

// This is no failure of the storage: for some errors SQLite undoes more than the statement
// (plugin_sql.hpp).
void LiveAgent::lose_turn() {
  write_line(LogLevel::kWarn, "agent.turn_lost", {class_->name()}, code_.call(),
             {{"error", "an error of the agent's SQL has undone all that this turn has written"}});
  give_up("the transaction was lost");
}

// ---- calls between agents -----------------------------------------------------------------------

extensions::CallOrigin LiveAgent::origin(CallId id) {
  const Call* const call = calls_.find(id);
  extensions::CallOrigin known;
  if (call == nullptr) {
    if (id != 0 && id == code_.call()) known.trace = trace();
    return known;
  }
  known.trace = call->span.text();
  known.method = call->method;
  known.origin = call->origin;
  known.is_in_progress = true;
  known.holds_calls = rule_of(call->kind).runs_method && call_order().holds_calls();
  known.runs_alone = call->runs_alone;
  if (call->timeout.count() > 0) known.due = call->due;
  return known;
}

// ---- HTTP ---------------------------------------------------------------------------------------

Result<extensions::RequestView> LiveAgent::request(CallId id) {
  Call* call = calls_.find(id);
  if (call == nullptr || !call->request) return gone("request");
  return extensions::RequestView{call->request->target, &call->request->headers,
                                 call->part_sent ? nullptr : &call->head, call->request->claims,
                                 &call->request->body};
}

void LiveAgent::body_came(CallId id) {
  Call* const call = calls_.find(id);
  if (call != nullptr && call->deadline != 0) arm_deadline(id, *call, call->timeout);
}

}  // namespace hearth::runtime
