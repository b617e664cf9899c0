#include "runtime/state_changes.hpp"

#include "extensions/state.hpp"
#include "runtime/agent_inbox.hpp"
#include "runtime/agent_store.hpp"
#include "runtime/shard_services.hpp"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hearth::runtime {

// ---- the write of a client ----------------------------------------------------------------------

StateChanges::Verdict StateChanges::judge(const Event& incoming) const {
  const Connection* const client = parts_.clients.connection(incoming.connection);
  if (client != nullptr && client->readonly())
    return {Error{Errc::kForbidden, "Connection is readonly"}, 403};
  if (incoming.body.empty()) return {Error{Errc::kInvalidArgument, "the state is no JSON"}};
  if (incoming.body.size() > parts_.agent.settings().max_state_bytes)
    return {Error{Errc::kLimitExceeded, "the state is too large"}};
  return {};
}

void StateChanges::write(Event& incoming, const Verdict& verdict, const extensions::Span& span) {
  const auto& [accepted, status] = verdict;
  if (accepted.has_error()) return answer(incoming, accepted.error(), status);
  const CodeOnStack::UnderSpan under(parts_.code, span);
  const bool is_stored = parts_.store.guard([&] {
    parts_.agent.of<extensions::StateExtension>().store(incoming.connection, incoming.body);
    answer(incoming, std::string());
  });
  if (!is_stored) answer(incoming, storage_error_for_clients());
}

void StateChanges::answer(Event& incoming, const Result<std::string>& outcome, unsigned status) {
  parts_.figures.event_ended(EventKind::kStateCheck,
                             outcome ? EventOutcome::kOk : EventOutcome::kError);
  if (!incoming.sink) return;  // the client has left, but its write counts
  parts_.store.outbox().push(
      FinishEffect{std::move(incoming.sink), incoming.connection, {status, {}}, outcome});
  if (outcome.has_error()) show_true_state(incoming.connection);
}

void StateChanges::show_true_state(ConnectionId id) {
  Connection* const client = parts_.clients.connection(id);
  if (client == nullptr || !client->protocol_enabled() || parts_.store.broken()) return;
  client->was_sent_state = true;
  parts_.store.guard([&] {
    const auto state = parts_.agent.of<extensions::StateExtension>().get();
    parts_.store.outbox().push(
        FrameEffect{{id}, parts_.services.state_frame(state ? *state : std::string_view())});
  });
}

// ---- what is told of a change -------------------------------------------------------------------

void StateChanges::begin_cause(std::shared_ptr<unsigned> chain) {
  auto cause = std::make_shared<extensions::StateCause>();
  cause->changes = chain ? std::move(chain) : std::make_shared<unsigned>(0);
  parts_.code.begin_cause(std::move(cause));
}

Result<void> StateChanges::may_change() {
  if (!parts_.code.state_cause()) return {};
  Result<void> counted = extensions::count_own_change(*parts_.code.state_cause());
  if (!counted.has_error()) return counted;
  parts_.calls.write_line(LogLevel::kWarn, "agent.state_loop", {parts_.agent_class.name()},
                          parts_.code.call(), {{"changes", extensions::kMaxOwnStateChanges}});
  return counted;
}

void StateChanges::changed(ConnectionId source, std::string_view json, std::uint64_t write) {
  std::vector<ConnectionId> to;
  for (const ConnectionId id : parts_.clients.all()) {
    Connection* const client = parts_.clients.connection(id);
    const bool shows_it = id == source && !client->was_sent_state;
    if (shows_it || !client->is_open() || !client->protocol_enabled()) continue;
    client->was_sent_state = true;
    to.push_back(id);
  }
  if (!to.empty())
    parts_.store.outbox().push(
        FrameEffect{std::move(to), parts_.services.state_frame(json), FrameKind::kText, write});
  if (parts_.agent_class.watches_state()) tell_instance(source, json, write);
}

// The turn that has made the change is still running.
void StateChanges::tell_instance(ConnectionId source, std::string_view json, std::uint64_t write) {
  Event incoming;
  incoming.kind = EventKind::kStateChanged;
  incoming.connection = source;
  incoming.body = json.empty() ? "null" : json;
  incoming.state_write = write;
  if (const auto& cause = parts_.code.state_cause()) incoming.state_chain = cause->changes;
  if (!parts_.code.span().is_none()) {
    // The trace of the change, without the original caller.
    auto origin = std::make_shared<extensions::Origin>();
    origin->trace = parts_.code.span().text();
    incoming.origin = std::move(origin);
  }
  parts_.inbox.queue().push(std::move(incoming));
}

// Clients and the instance get the state of the file.
void StateChanges::undone(std::uint64_t last_write) {
  parts_.store.outbox().withdraw_states(last_write);
  parts_.inbox.undo_states(last_write);
}

}  // namespace hearth::runtime
