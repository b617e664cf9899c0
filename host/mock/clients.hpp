#pragma once
// The clients of one agent of a mock host.

#include "extensions/client.hpp"

#include <hearth/testing/mock.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string_view>
#include <vector>

namespace hearth::mock {

using testing::detail::ClientRecord;

// One client: `known` is the agent's view of it, `seen` the test's.
struct Client {
  extensions::Client known;
  std::shared_ptr<ClientRecord> seen;
  bool greeted = false;                       // CONNECT has ended
  bool close_sent = false;                    // CLOSE was delivered, or waits for delivery
  std::deque<std::function<void()>> waiting;  // events that wait until it is greeted
};

// Data that is sent to a client is in its record at once.
class Clients final : public extensions::Clients {
 public:
  Client& add(std::shared_ptr<ClientRecord> seen);
  void remove(extensions::ConnectionId id);
  void clear();
  [[nodiscard]] std::map<extensions::ConnectionId, Client>& by_id() { return by_id_; }
  // Null if there is no such client.
  [[nodiscard]] Client* find_client(extensions::ConnectionId id);
  // The client stops to read, or gets what has waited.
  static void hold(ClientRecord& client, bool hold);
  // Copies flags and tags that the agent has set into the records.
  void show();
  // Shows the state to all clients with the protocol, except `but`.
  void show_state(std::string_view json, extensions::ConnectionId but);

  extensions::Client* find(extensions::ConnectionId id) override;
  [[nodiscard]] const std::vector<extensions::ConnectionId>& all() const override { return all_; }
  [[nodiscard]] std::size_t max_frame_bytes() const override { return std::size_t{16} << 20; }
  void send(extensions::Client& to, extensions::FrameKind kind, std::string_view payload) override;
  void send_to_many(std::vector<extensions::ConnectionId> to, extensions::FrameKind kind,
                    std::string_view payload) override;
  void close(extensions::Client& client, std::uint16_t code, std::string_view reason) override;

 private:
  std::map<extensions::ConnectionId, Client> by_id_;
  std::vector<extensions::ConnectionId> all_;
};

}  // namespace hearth::mock
