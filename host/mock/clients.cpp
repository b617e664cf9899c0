#include "mock/clients.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace hearth::mock {

Client& Clients::add(std::shared_ptr<ClientRecord> seen) {
  Client& client = by_id_[seen->number];
  client.known.id = seen->number;
  client.known.client_id = seen->id;
  client.seen = std::move(seen);
  all_.push_back(client.known.id);
  return client;
}

void Clients::remove(extensions::ConnectionId id) {
  by_id_.erase(id);
  std::erase(all_, id);
}

void Clients::clear() {
  by_id_.clear();
  all_.clear();
}

Client* Clients::find_client(extensions::ConnectionId id) {
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : &found->second;
}

extensions::Client* Clients::find(extensions::ConnectionId id) {
  Client* const client = find_client(id);
  return client == nullptr ? nullptr : &client->known;
}

void Clients::hold(ClientRecord& client, bool hold) {
  client.held = hold;
  if (hold) return;
  for (testing::ReceivedFrame& frame : std::exchange(client.unread, {}))
    client.received.push_back(std::move(frame));
}

void Clients::show() {
  for (auto& [id, client] : by_id_) {
    client.seen->flags = client.known.flags;
    client.seen->tags = client.known.tags;
    client.seen->tags.insert(client.seen->tags.begin(), client.known.client_id);
  }
}

void Clients::show_state(std::string_view json, extensions::ConnectionId but) {
  for (auto& [id, client] : by_id_) {
    if (id == but || !client.seen->open || !client.known.protocol_enabled()) continue;
    client.seen->state.reset();
    if (!json.empty()) client.seen->state = json;
  }
}

void Clients::send(extensions::Client& to, extensions::FrameKind kind, std::string_view payload) {
  Client* const client = find_client(to.id);
  if (client == nullptr || !client->seen->open) return;
  ClientRecord& seen = *client->seen;
  (seen.held ? seen.unread : seen.received)
      .push_back({std::string(payload), kind == extensions::FrameKind::kBinary});
}

void Clients::send_to_many(std::vector<extensions::ConnectionId> to, extensions::FrameKind kind,
                           std::string_view payload) {
  for (const extensions::ConnectionId id : to) {
    if (Client* const client = find_client(id)) send(client->known, kind, payload);
  }
}

void Clients::close(extensions::Client& client, std::uint16_t code, std::string_view reason) {
  Client* const closed = find_client(client.id);
  if (closed == nullptr) return;
  closed->seen->open = false;
  closed->seen->close_code = code;
  closed->seen->close_reason = reason;
}

}  // namespace hearth::mock
