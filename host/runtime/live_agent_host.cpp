// What extensions may ask of a live agent: its calls, its end, and who hears of its state.
#include "json/json_scanner.hpp"
#include "runtime/live_agent.hpp"
#include "runtime/shard_services.hpp"

#include <utility>

namespace hearth::runtime {
namespace {

constexpr std::size_t kMaxErrorText = 4096;

// A handler may settle the state in some steps. One that never ends would fill the disk.
constexpr unsigned kMostOwnChanges = 100;

Error gone(std::string_view what) {
  return Error{Errc::kNotFound, "no such " + std::string(what)};
}

}  // namespace

Result<void> LiveAgent::complete(CallId id, const Result<std::string_view>& outcome) {
  if (id == 0 && outcome.has_error()) {
    refusal_text_ = outcome.error().message.substr(0, kMaxErrorText);
    return {};
  }
  Call* call = calls_.find(id);
  if (call == nullptr) return gone("call: it was completed, cancelled or timed out");
  // The end of durable work is rows: a rollback would undo them, and memory would take the work for
  // done.
  if (call->work && in_transaction()) {
    return Error{Errc::kInvalidArgument, "not while a transaction of the agent's own is open"};
  }
  if (outcome.has_error()) {
    Error error = outcome.error();
    // Only a class that refuses the event recovers or migrates nothing; one that tried and failed
    // is asked again.
    const bool tried =
        call->kind == EventKind::kFiberRecovered || call->kind == EventKind::kMigrate;
    if (tried && error.code == Errc::kUnsupported) error.code = Errc::kPlugin;
    finish(id, *call, Error{error.code, error.message.substr(0, kMaxErrorText)});
    return {};
  }
  const std::string_view body = outcome.value();
  if (body.size() > services_.limits().max_answer_bytes) {
    Error error{Errc::kLimitExceeded, "the agent's answer is too large"};
    finish(id, *call, error);
    return error;
  }
  if (call->kind == EventKind::kCall && !body.empty() && !is_json(body)) {
    finish(id, *call, Error{Errc::kPlugin, "the agent's answer is not JSON"});
    return Error{Errc::kInvalidArgument, "the answer to a call must be JSON"};
  }
  finish(id, *call, body);
  return {};
}

Result<void> LiveAgent::emit(CallId id, std::string_view part) {
  Call* call = calls_.find(id);
  if (call == nullptr) return gone("call");
  if (!rule_of(call->kind).runs_method) {
    return Error{Errc::kUnsupported, "only calls and requests have parts"};
  }
  const bool left = call->connection != 0 && clients_.connection(call->connection) == nullptr;
  if (!call->sink || left || call->sink->abandoned()) return gone("caller: the client has left");
  if (part.size() > services_.limits().max_answer_bytes) {
    return Error{Errc::kLimitExceeded, "the part is too large"};
  }
  if (call->kind == EventKind::kCall && !is_json(part)) {
    return Error{Errc::kInvalidArgument, "a part of a call's answer must be JSON"};
  }
  call->part_sent = true;
  forbid_another_try(*call);
  if (call->deadline != 0) arm_deadline(id, *call, services_.limits().call_timeout);
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
  services_.condemn(owner_.key());
  if (gate_ != nullptr) {
    gate_->directory_written();
    directory_dirty_ = true;
  }
  wish_ = Wish::kBeDestroyed;
  return {};
}

void LiveAgent::log(LogLevel level, std::string_view text) {
  services_.logger().write_limited(
      level, "agent.log", {class_->name()},
      {{"class", class_->name()}, {"agent", owner_.key().name}, {"text", text.substr(0, 8192)}},
      Logger::kWorkLimit);
}

// An error with another code is the author's answer to the client, and no news.
void LiveAgent::tell_failure(const Call& call, const Error& error) {
  if (!rule_of(call.kind).runs_method || error.code != Errc::kPlugin) return;
  services_.logger().write_limited(LogLevel::kWarn, "agent.call_failed", {class_->name()},
                                   {{"class", class_->name()},
                                    {"agent", owner_.key().name},
                                    {"event", to_string(call.kind)},
                                    {"method", call.method},
                                    {"error", error.message}});
}

// ---- state --------------------------------------------------------------------------------------

Result<void> LiveAgent::may_change() {
  if (!state_chain_ || ++*state_chain_ <= kMostOwnChanges) return {};
  services_.logger().write_limited(
      LogLevel::kWarn, "agent.state_loop", {class_->name()},
      {{"class", class_->name()}, {"agent", owner_.key().name}, {"changes", kMostOwnChanges}});
  return Error{Errc::kLimitExceeded, "on_state_changed has changed the state " +
                                         std::to_string(kMostOwnChanges) +
                                         " times after one change: does it ever end?"};
}

void LiveAgent::changed(ConnectionId source, std::string_view json, std::uint64_t write) {
  std::vector<ConnectionId> to;
  for (const ConnectionId id : clients_.all()) {
    const Connection* client = clients_.connection(id);
    if (id != source && client->is_open() && client->protocol_enabled()) to.push_back(id);
  }
  if (!to.empty()) {
    outbox_.push(FrameEffect{std::move(to), services_.state_frame(json), FrameKind::kText, write});
  }
  if (class_->watches_state())
    owner_.state_changed(source, json.empty() ? "null" : json, write, state_chain_);
}

// Clients and the instance itself follow the file.
void LiveAgent::undone(std::uint64_t last_write) {
  outbox_.withdraw_states(last_write);
  owner_.states_undone(last_write);
}

// ---- HTTP ---------------------------------------------------------------------------------------

Result<extensions::RequestView> LiveAgent::request(CallId id) {
  Call* call = calls_.find(id);
  if (call == nullptr || !call->request) return gone("request");
  return extensions::RequestView{call->request->target, &call->request->headers,
                                 call->part_sent ? nullptr : &call->head};
}

}  // namespace hearth::runtime
