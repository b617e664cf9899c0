#include "extensions/client.hpp"

#include <algorithm>
#include <utility>

namespace hearth::extensions {

bool Client::has_tag(std::string_view tag) const {
  return tag == client_id || std::ranges::find(tags, tag) != tags.end();
}

void tell_protocol_clients(Clients& clients, std::string_view frame) {
  std::vector<ConnectionId> to;
  for (const ConnectionId id : clients.all()) {
    const Client* const client = clients.find(id);
    if (client->is_open() && client->protocol_enabled()) to.push_back(id);
  }
  if (!to.empty()) clients.send_to_many(std::move(to), FrameKind::kText, frame);
}

}  // namespace hearth::extensions
