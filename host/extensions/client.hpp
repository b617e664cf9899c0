#pragma once
// The clients of an agent, as its code sees them. They belong to the host: a client stays, with its
// id, tags, flags and attachment, while the agent is evicted or its code replaced.

#include "base/interface.hpp"
#include "extensions/origin.hpp"
#include "extensions/types.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::extensions {

enum class ConnectionState {
  kWaiting,     // before the agent's start: the agent does not know it yet
  kConnecting,  // CONNECT is in progress; its messages wait
  kOpen,        // messages are delivered
  kClosed,      // the socket has gone; CLOSE waits or is in progress
};

// Threads  The agent's shard.
struct Client {
  static constexpr std::size_t kMaxTags = 10;
  static constexpr std::size_t kMaxTagBytes = 256;
  static constexpr std::size_t kMaxAttachmentBytes = std::size_t{16} << 10;
  static constexpr std::uint32_t kReadonly = 1;    // HEARTH_CONNECTION_READONLY
  static constexpr std::uint32_t kNoProtocol = 2;  // HEARTH_CONNECTION_NO_PROTOCOL

  [[nodiscard]] bool protocol_enabled() const { return (flags & kNoProtocol) == 0; }
  [[nodiscard]] bool readonly() const { return (flags & kReadonly) != 0; }
  [[nodiscard]] bool has_tag(std::string_view tag) const;
  // The agent knows the client, and may still send to it.
  [[nodiscard]] bool is_open() const {
    return (state == ConnectionState::kConnecting || state == ConnectionState::kOpen) && !closing;
  }

  // The claims of the client's token, a JSON object; empty: it sent no token.
  [[nodiscard]] std::string_view claims() const {
    return origin == nullptr ? std::string_view() : origin->claims;
  }

  ConnectionId id = 0;
  ConnectionState state = ConnectionState::kWaiting;
  bool deciding = false;    // in the CONNECTING event: tags and all flags may be set
  bool closing = false;     // close() was called; nothing more is sent
  std::uint32_t flags = 0;  // kReadonly | kNoProtocol
  std::string client_id;    // the client's own choice; not unique, not trusted
  std::string target;
  Headers headers;
  // The origin of its events, which share it and may outlive the client: its trace and its claims.
  // Null: it has neither.
  OriginPtr origin;
  std::vector<std::string> tags;  // without the id, which is always the first tag
  std::string attachment;
};

// The clients of one agent.
//
// Threads   The agent's shard.
// Re-entry  No member calls the agent's code.
class Clients : public Interface {
 public:
  // Null if this agent has no such client.
  [[nodiscard]] virtual Client* find(ConnectionId id) = 0;
  // In the order of their arrival. Each of them can be found.
  [[nodiscard]] virtual const std::vector<ConnectionId>& all() const = 0;
  // The largest frame.
  [[nodiscard]] virtual std::size_t max_frame_bytes() const = 0;

  // The frame leaves when all earlier writes are durable. The caller has checked it.
  virtual void send(Client& to, FrameKind kind, std::string_view payload) = 0;
  virtual void send_to_many(std::vector<ConnectionId> to, FrameKind kind,
                            std::string_view payload) = 0;
  // The close leaves after the frames that were sent. The client is `closing` already.
  virtual void close(Client& client, std::uint16_t code, std::string_view reason) = 0;
};

// Sends a text frame to all open clients that speak the protocol.
void tell_protocol_clients(Clients& clients, std::string_view frame);

}  // namespace hearth::extensions
