#pragma once
// How an agent sees a client. api/ implements it over a WebSocket. Tests implement it in ten lines,
// and so test the runtime without a socket.

#include "base/client_memory.hpp"
#include "base/clock.hpp"
#include "base/close_codes.hpp"
#include "base/interface.hpp"
#include "runtime/types.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

namespace hearth::runtime {

// The first frames tell a new client this about the agent.
struct Handshake {
  std::string_view agent_segment;         // "chat-room"
  std::string_view agent_name;            // as it stands in the URL
  std::optional<std::string_view> state;  // JSON
  bool identity = true;                   // also tells the class and the name
};

// Threads    All members on the shard of the agent.
// Re-entry   No member may call back into the runtime before it returns. News from the client (a
//            message, a disconnect) comes through Shard::message() and its siblings, from the loop.
// Lifetime   Owned by the runtime's Connection; destroyed after Shard::disconnected().
class ConnectionPort : public Interface {
 public:
  // Queues one frame. Never blocks. A client that reads too slowly is closed by the port.
  virtual void send(std::string_view payload, FrameKind kind) = 0;
  // The same for a frame to many clients: a port that keeps it need not copy it.
  virtual void send_shared(const SharedBytes& payload, FrameKind kind) {
    send(payload.view(), kind);
  }

  // Queues the frames of the protocol's handshake.
  virtual void send_handshake(const Handshake& handshake) = 0;

  // Closes after the queued frames. The port later reports the end through Shard::disconnected().
  virtual void close(std::uint16_t code, std::string_view reason) = 0;

  // Calls `notice` once, when the client has taken most frames or is no longer open; on any thread,
  // and maybe inside this call.
  // NOLINTNEXTLINE(performance-unnecessary-value-param): others keep it
  virtual void when_drained(std::function<void()> notice) { notice(); }
  // Whether the client may still get frames: neither side has started to close.
  [[nodiscard]] virtual bool is_open() const { return true; }

  // Bytes that wait for the client to read them.
  [[nodiscard]] virtual std::size_t unsent_bytes() const { return 0; }
  // Since it last took some.
  [[nodiscard]] virtual std::optional<SteadyTime> behind_since() const { return std::nullopt; }

  // false: stop taking frames from the client (back-pressure). Frames already taken may still come.
  virtual void set_reading(bool reading) = 0;
};

}  // namespace hearth::runtime
