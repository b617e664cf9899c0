#include "runtime/connections.hpp"

#include <iterator>
#include <utility>

namespace hearth::runtime {

Connection& Connections::add(AgentSlot* agent, ConnectRequest request,
                             std::unique_ptr<ConnectionPort> port) {
  const auto [id, client] = clients_.emplace();
  count_.set(std::ssize(clients_));
  client.id = id;
  client.slot = agent;
  client.port = std::move(port);
  client.client_id = std::move(request.id);
  client.target = std::move(request.target);
  client.headers = std::move(request.headers);
  return client;
}

void Connections::remove(ConnectionId id) {
  clients_.erase(id);
  count_.set(std::ssize(clients_));
}

}  // namespace hearth::runtime
