#include "runtime/agent_clients.hpp"

#include "base/escape.hpp"
#include "runtime/agent_inbox.hpp"
#include "runtime/outbox.hpp"
#include "runtime/shard_services.hpp"

#include <string>
#include <utility>

namespace hearth::runtime {

Connection* AgentClients::connection(ConnectionId id) const {
  return inbox_.client(id);
}

void AgentClients::end(Connection& client, std::uint16_t code, std::string_view reason) {
  client.closing = true;
  outbox_.push(CloseEffect{client.id, code, std::string(cut_text(reason, kMaxCloseReason))});
}

void AgentClients::add_waits(std::vector<extensions::Wait>& to) const {
  constexpr std::size_t kMuchUnsent = std::size_t{64} << 10;  // what a socket may well hold
  for (const ConnectionId id : all()) {
    const Connection* const client = connection(id);
    if (client == nullptr) continue;
    const std::size_t unsent = client->port->unsent_bytes();
    const auto since = client->port->behind_since();
    if (unsent <= kMuchUnsent || !since) continue;
    to.push_back({.kind = extensions::WaitKind::kBehind,
                  .subject = client->client_id,
                  .detail = std::to_string(unsent) + " bytes",
                  .since_ms = unix_millis_of(*since, services_.loop.clock())});
  }
}

const std::vector<ConnectionId>& AgentClients::all() const {
  return inbox_.clients();
}

std::size_t AgentClients::max_frame_bytes() const {
  return services_.limits.max_answer_bytes;
}

void AgentClients::send(extensions::Client& to, FrameKind kind, std::string_view payload) {
  if (outbox_.open()) {
    // The hot path of an echo: this copies nothing.
    static_cast<Connection&>(to).port->send(payload, kind);
  } else {
    outbox_.push(FrameEffect{{to.id}, std::string(payload), kind});
  }
}

void AgentClients::send_to_many(std::vector<ConnectionId> to, FrameKind kind,
                                std::string_view payload) {
  outbox_.push(FrameEffect{std::move(to), std::string(payload), kind});
}

void AgentClients::close(extensions::Client& client, std::uint16_t code, std::string_view reason) {
  outbox_.push(CloseEffect{client.id, code, std::string(reason)});
}

}  // namespace hearth::runtime
