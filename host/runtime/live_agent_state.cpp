// The state of a live agent: how a client writes it, and which parts are told of a change.
#include "extensions/state.hpp"
#include "runtime/agent_inbox.hpp"
#include "runtime/live_agent.hpp"
#include "runtime/shard_services.hpp"

#include <optional>
#include <utility>

namespace hearth::runtime {

void LiveAgent::write_state_of_client(Event& incoming) {
  const auto answer = [&](const Result<std::string>& outcome, unsigned status = 200) {
    figures_.event_ended(EventKind::kStateCheck,
                         outcome ? EventOutcome::kOk : EventOutcome::kError);
    if (!incoming.sink) return;  // the client has left, but its write counts
    outbox_.push(
        FinishEffect{std::move(incoming.sink), incoming.connection, {status, {}}, outcome});
    if (outcome.has_error()) show_true_state(incoming.connection);
  };
  const Connection* client = clients_.connection(incoming.connection);
  if (client != nullptr && client->readonly()) {
    answer(Error{Errc::kForbidden, "Connection is readonly"}, 403);
  } else if (incoming.body.empty()) {
    answer(Error{Errc::kInvalidArgument, "the state is no JSON"});
  } else if (incoming.body.size() > settings().max_state_bytes) {
    answer(Error{Errc::kLimitExceeded, "the state is too large"});
  } else {
    const Span span = span_of(incoming.origin);
    Result<void> accepted;
    if (class_->checks_state()) {
      AgentEvent event;
      event.kind = EventKind::kStateCheck;
      event.connection = incoming.connection;
      event.body = incoming.body;
      accepted = enter(event, span);
    }
    if (accepted.has_error() && accepted.error().code != Errc::kUnsupported) {
      answer(accepted.error());
    } else {
      const UnderSpan under(code_, span);
      const bool is_stored = guard([&] {
        of<extensions::StateExtension>().store(incoming.connection, incoming.body);
        answer(std::string());
      });
      if (!is_stored) answer(storage_error_for_clients());
    }
  }
  leave();
}

void LiveAgent::show_true_state(ConnectionId id) {
  Connection* client = clients_.connection(id);
  if (client == nullptr || !client->protocol_enabled() || broken_) return;
  client->was_sent_state = true;
  guard([&] {
    const auto state = of<extensions::StateExtension>().get();
    outbox_.push(FrameEffect{{id}, services_.state_frame(state ? *state : std::string_view())});
  });
}

// ---- what is told of a change ----

void LiveAgent::begin_cause(std::shared_ptr<unsigned> chain) {
  auto cause = std::make_shared<extensions::StateCause>();
  cause->changes = chain ? std::move(chain) : std::make_shared<unsigned>(0);
  code_.begin_cause(std::move(cause));
}

Result<void> LiveAgent::may_change() {
  if (!code_.state_cause()) return {};
  Result<void> counted = extensions::count_own_change(*code_.state_cause());
  if (!counted.has_error()) return counted;
  calls_.write_line(LogLevel::kWarn, "agent.state_loop", {class_->name()}, code_.call(),
                    {{"changes", extensions::kMaxOwnStateChanges}});
  return counted;
}

void LiveAgent::changed(ConnectionId source, std::string_view json, std::uint64_t write) {
  std::vector<ConnectionId> to;
  for (const ConnectionId id : clients_.all()) {
    Connection* client = clients_.connection(id);
    const bool shows_it = id == source && !client->was_sent_state;
    if (shows_it || !client->is_open() || !client->protocol_enabled()) continue;
    client->was_sent_state = true;
    to.push_back(id);
  }
  if (!to.empty()) {
    outbox_.push(FrameEffect{std::move(to), services_.state_frame(json), FrameKind::kText, write});
  }
  if (class_->watches_state()) {
    Event incoming;
    incoming.kind = EventKind::kStateChanged;
    incoming.connection = source;
    incoming.body = json.empty() ? "null" : json;
    incoming.state_write = write;
    if (const auto& cause = code_.state_cause()) incoming.state_chain = cause->changes;
    incoming.origin = trace_alone();
    parts_.inbox.queue().push(std::move(incoming));  // this turn is still running
  }
}

// Clients and the instance get the state of the file.
void LiveAgent::undone(std::uint64_t last_write) {
  outbox_.withdraw_states(last_write);
  parts_.inbox.undo_states(last_write);
}

// The origin for what the current work causes: its trace, without the original caller.
extensions::OriginPtr LiveAgent::trace_alone() const {
  if (code_.span().is_none()) return nullptr;
  auto origin = std::make_shared<extensions::Origin>();
  origin->trace = code_.span().text();
  return origin;
}

}  // namespace hearth::runtime
