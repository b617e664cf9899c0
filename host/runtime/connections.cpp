#include "runtime/connections.hpp"

#include "base/close_codes.hpp"
#include "runtime/event.hpp"

#include <iterator>
#include <utility>

namespace hearth::runtime {

Connection& Connections::add(AgentSlot* agent, ConnectRequest request,
                             std::unique_ptr<ConnectionPort> port) {
  const auto [id, client] = clients_.emplace();
  parts_.count.set(std::ssize(clients_));
  client.id = id;
  client.slot = agent;
  client.port = std::move(port);
  client.client_id = std::move(request.id);
  client.target = std::move(request.target);
  client.headers = std::move(request.headers);
  client.origin = traced_origin(client.headers, std::move(request.claims));
  client.held.emplace(parts_.memory, client.client_id.size() + client.target.size() +
                                         client.claims().size() + text_bytes(client.headers));
  return client;
}

void Connections::drop_for_memory(Connection& client, std::string_view why) {
  if (!client.end(kCloseTryAgainLater, why)) return;
  parts_.dropped.add();
  parts_.logger.write_limited(LogLevel::kInfo, "agent.client_dropped", {"memory"},
                              {{"reason", "memory"}});
}

void Connections::remove(ConnectionId id) {
  clients_.erase(id);
  parts_.count.set(std::ssize(clients_));
}

}  // namespace hearth::runtime
