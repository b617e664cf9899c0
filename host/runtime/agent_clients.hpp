#pragma once
// The clients of a live agent, as its extensions see them.

#include "extensions/client.hpp"
#include "extensions/wait.hpp"
#include "runtime/connection.hpp"

#include <cstdint>
#include <string_view>
#include <vector>

namespace hearth::runtime {

class AgentInbox;
class Outbox;
struct ShardServices;

// Threads  The shard's.  Lifetime  The constructor arguments outlive it.
class AgentClients final : public extensions::Clients {
 public:
  AgentClients(const AgentInbox& inbox, const ShardServices& services, Outbox& outbox)
      : inbox_(inbox), services_(services), outbox_(outbox) {}

  // Like find(), with the socket.
  [[nodiscard]] Connection* connection(ConnectionId id) const;
  // Closes a client for a reason of the host. Cannot fail, whatever the text.
  void end(Connection& client, std::uint16_t code, std::string_view reason);
  // Those that have not taken what was sent to them.
  void add_waits(std::vector<extensions::Wait>& to) const;

  [[nodiscard]] extensions::Client* find(ConnectionId id) override { return connection(id); }
  [[nodiscard]] const std::vector<ConnectionId>& all() const override;
  [[nodiscard]] std::size_t max_frame_bytes() const override;
  void send(extensions::Client& to, FrameKind kind, std::string_view payload) override;
  void send_to_many(std::vector<ConnectionId> to, FrameKind kind,
                    std::string_view payload) override;
  void close(extensions::Client& client, std::uint16_t code, std::string_view reason) override;

 private:
  const AgentInbox& inbox_;
  const ShardServices& services_;
  Outbox& outbox_;
};

}  // namespace hearth::runtime
