#pragma once
// How an agent sees a client. api/ implements it over a WebSocket; tests implement it in ten lines,
// so that the runtime is tested without a socket.

#include "base/client_memory.hpp"
#include "base/close_codes.hpp"
#include "runtime/types.hpp"

#include <cstdint>
#include <optional>
#include <string_view>

namespace hearth::runtime {

// What a new client is told about the agent before anything else.
struct Handshake {
  std::string_view agent_segment;         // "chat-room"
  std::string_view agent_name;            // as it stands in the URL
  std::optional<std::string_view> state;  // JSON
  bool identity = true;                   // the class and the name are told too
};

// Threads    All members on the shard of the agent.
// Re-entry   No member may call back into the runtime before it returns. News from the client (a
//            message, its leaving) come through Shard::receive and friends, from the loop.
// Lifetime   Owned by the runtime's Connection; destroyed after Shard::disconnected().
class ConnectionPort {
 public:
  ConnectionPort() = default;
  virtual ~ConnectionPort() = default;
  ConnectionPort(const ConnectionPort&) = delete;
  ConnectionPort& operator=(const ConnectionPort&) = delete;

  // Queues one frame. Never blocks. A client that reads too slowly is closed by the port.
  virtual void send(std::string_view payload, FrameKind kind) = 0;
  // The same for a frame that goes to many: a port that must keep it need not copy it.
  virtual void send_shared(const SharedBytes& payload, FrameKind kind) {
    send(payload.view(), kind);
  }

  // Queues the frames of the protocol's handshake.
  virtual void send_handshake(const Handshake& handshake) = 0;

  // Closes after what was queued. The port reports the end through Shard::disconnected() later.
  virtual void close(std::uint16_t code, std::string_view reason) = 0;

  // false: take no more frames from the client (back-pressure). Frames already taken may still
  // come.
  virtual void set_reading(bool reading) = 0;
};

}  // namespace hearth::runtime
