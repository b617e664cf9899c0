#include "runtime/agent_inbox.hpp"

#include "base/close_codes.hpp"
#include "base/escape.hpp"
#include "extensions/agent_line.hpp"
#include "runtime/call_sink.hpp"

#include <utility>

namespace hearth::runtime {

AgentInbox::AgentInbox(const storage::AgentKey& key, const Parts& parts,
                       std::function<void()> expired)
    : key_(key),
      parts_(parts),
      expired_(std::move(expired)),
      queue_(parts.connections, parts.client_memory, parts.limits) {}

// ---- clients ------------------------------------------------------------------------------------

void AgentInbox::add(ConnectionId id) {
  find(id)->inbox = this;
  clients_.push_back(id);
}

Connection* AgentInbox::client(ConnectionId id) const {
  Connection* const found = find(id);
  return found != nullptr && found->inbox == this ? found : nullptr;
}

void AgentInbox::forget(ConnectionId id) {
  std::erase(clients_, id);
  parts_.connections.remove(id);
}

void AgentInbox::end_clients(std::uint16_t code, std::string_view why) {
  for (const ConnectionId id : clients_) {
    Connection* client = find(id);
    if (client->state != ConnectionState::kClosed) client->end(code, why);
  }
}

void AgentInbox::part_with_known(const Error& gone) {
  const auto is_known = [this](const OwnedEvent& event) {
    const Connection* client = find(event.connection);
    const bool unknown_client =
        client != nullptr && client->state == ConnectionState::kWaiting && !client->closing;
    const bool is_agents = event.kind == EventKind::kCall && event.connection == 0;
    const bool is_strangers =
        event.kind == EventKind::kRequest || event.kind == EventKind::kSubAgent;
    return !is_strangers && !is_agents && !unknown_client;
  };
  for (const OwnedEvent& event : queue_.take_if(is_known)) {
    const Connection* client = find(event.connection);
    if (event.sink && client != nullptr && client->state != ConnectionState::kClosed)
      event.sink->finish(ResponseHead{404, {}}, gone);
  }
  for (const ConnectionId id : clients_) {
    Connection* client = find(id);
    client->connect_in_progress = false;
    if (client->state == ConnectionState::kClosed || client->state == ConnectionState::kWaiting)
      continue;
    client->state = ConnectionState::kWaiting;  // the next agent gets no CLOSE for it
    client->end(kCloseDestroyed, gone.message);
  }
}

// A CLOSE that was in progress ended with the instance, which can no longer forget the client.
void AgentInbox::part_with_unfinished() {
  for (const ConnectionId id : std::vector(clients_)) {
    Connection* client = find(id);
    const bool closed = client->state == ConnectionState::kClosed;
    if (closed && !queue_.has_close_of(id)) {
      forget(id);
    } else if (client->connect_in_progress) {
      part_with_unconnected(*client);
    }
  }
}

void AgentInbox::part_with_unconnected(Connection& client) {
  client.connect_in_progress = false;
  if (client.state == ConnectionState::kClosed) return;
  client.state = ConnectionState::kOpen;  // so that its end becomes an event
  client.end(kCloseServiceRestart, "the agent restarted while you connected");
}

// ---- events -------------------------------------------------------------------------------------

void AgentInbox::push(Event event) {
  const SteadyTime due =
      event.interruptions.has_due() ? event.interruptions.due : SteadyTime::max();
  queue_.push(std::move(event));
  if (due < watched_) watch_timed();
}

// ---- events that were cut off ----

void AgentInbox::put_back(std::vector<OwnedEvent> events, EvictReason reason,
                          const Error& no_room) {
  if (events.empty()) return;
  std::erase_if(events, [this](const OwnedEvent& event) {
    if (event.kind != EventKind::kConnect) return false;
    Connection* client = find(event.connection);
    if (client == nullptr) return true;
    client->connect_in_progress = false;  // its other events are behind this one in the queue
    return false;
  });
  const std::size_t come_again = events.size();
  queue_.put_back(std::move(events), no_room);
  parts_.logger.write(LogLevel::kDebug, "agent.interrupted",
                      {{"class", key_.agent_class},
                       {"agent", key_.name},
                       {"reason", to_string(reason)},
                       {"come_again", come_again}});
  watch_timed();
}

void AgentInbox::undo_states(std::uint64_t last_write) {
  (void)queue_.take_if(
      [last_write](const OwnedEvent& event) { return event.state_write > last_write; });
}

void AgentInbox::watch_timed() {
  timed_timer_.cancel();
  watched_ = queue_.next_due();
  if (watched_ == SteadyTime::max()) return;
  timed_timer_ = LoopTimer(parts_.loop, watched_, [this] { expire_timed(); });
}

void AgentInbox::expire_timed() {
  const SteadyTime now = parts_.loop.clock().steady_now();
  const auto is_over = [now](const OwnedEvent& event) {
    return event.interruptions.has_due() && event.interruptions.due <= now;
  };
  for (const OwnedEvent& event : queue_.take_if(is_over)) give_up(event);
  watch_timed();
  expired_();
}

void AgentInbox::give_up(const OwnedEvent& event) {
  const std::string_view method =
      rule_of(event.kind).runs_method ? std::string_view(event.name) : std::string_view();
  parts_.logger.write_limited(
      LogLevel::kWarn, "agent.event_timed_out", {key_.agent_class, to_string(event.kind)},
      extensions::agent_line(
          {.agent_class = key_.agent_class,
           .agent = key_.name,
           .method = cut_text(method, extensions::kMaxShownMethod),
           .trace = event.origin ? std::string_view(event.origin->trace) : std::string_view()},
          {{"event_kind", to_string(event.kind)}}));
  Connection* client = find(event.connection);
  if (event.kind == EventKind::kConnect) {
    if (client != nullptr) part_with_unconnected(*client);
  } else if (event.sink && (event.connection == 0 || client != nullptr)) {
    event.sink->finish(ResponseHead{504, {}},
                       Error{Errc::kTimeout, "the agent did not answer in time"});
  }
}

// ---- events that cannot be delivered ----

void AgentInbox::refuse_all(const Error& error, std::uint16_t close_code) {
  refuse(queue_.take_if([](const OwnedEvent&) { return true; }), error, close_code);
}

void AgentInbox::refuse_strangers(const Error& error, std::uint16_t close_code) {
  const auto is_strange = [this](const OwnedEvent& event) {
    const Connection* client = find(event.connection);
    return client == nullptr || (client->state != ConnectionState::kClosed &&
                                 (client->state == ConnectionState::kWaiting || client->closing));
  };
  refuse(queue_.take_if(is_strange), error, close_code);
}

void AgentInbox::refuse(const std::vector<OwnedEvent>& events, const Error& error,
                        std::uint16_t close_code) {
  for (const OwnedEvent& event : events) {
    Connection* client = find(event.connection);
    // A client that the agent knows gets no second CONNECT, but the agent gets its CLOSE.
    if (event.kind == EventKind::kConnect && client != nullptr) client->connect_in_progress = false;
    if (event.sink) {
      if (event.connection == 0 || client != nullptr)
        event.sink->finish(ResponseHead{503, {}}, error);
    } else if (event.kind == EventKind::kClose) {
      forget(event.connection);
    } else if (client != nullptr) {
      // A frame without a sink gets no answer.
      client->end(close_code, error.message);
    }
  }
}

}  // namespace hearth::runtime
