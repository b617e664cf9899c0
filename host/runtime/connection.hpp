#pragma once
// One client of an agent. It belongs to the host: it stays, with id, tags, flags and attachment,
// while the agent is evicted or its code replaced.

#include "runtime/connection_port.hpp"
#include "runtime/types.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace hearth::runtime {

class AgentSlot;  // NOLINT(cppcoreguidelines-virtual-class-destructor): it is final

// What a client says when it connects.
struct ConnectRequest {
  std::string id;      // the client's own choice; not unique, not trusted
  std::string target;  // request target as sent: "/agents/counter/a?x=1"
  Headers headers;     // of the upgrade request; forgotten when CONNECT is completed
};

enum class ConnectionState {
  kWaiting,     // behind the start gate: the agent does not know it yet
  kConnecting,  // CONNECT is in progress; its messages wait
  kOpen,        // messages are delivered
  kClosed,      // the socket is gone; CLOSE is waiting or in progress
};

// A value of the runtime: only the shard's thread touches it.
struct Connection {
  static constexpr std::size_t kMaxTags = 10;
  static constexpr std::size_t kMaxTagBytes = 256;
  static constexpr std::size_t kMaxAttachmentBytes = std::size_t{16} << 10;
  static constexpr std::uint32_t kReadonly = 1;    // HEARTH_CONNECTION_READONLY
  static constexpr std::uint32_t kNoProtocol = 2;  // HEARTH_CONNECTION_NO_PROTOCOL

  [[nodiscard]] bool protocol_enabled() const { return (flags & kNoProtocol) == 0; }
  [[nodiscard]] bool readonly() const { return (flags & kReadonly) != 0; }
  [[nodiscard]] bool has_tag(std::string_view tag) const;
  // Has the port close the socket, unless that was done before. True if it did.
  bool end(std::uint16_t code, std::string_view why);

  ConnectionId id = 0;
  AgentSlot* slot = nullptr;             // the agent it is connected to; outlives the connection
  std::unique_ptr<ConnectionPort> port;  // never null
  ConnectionState state = ConnectionState::kWaiting;
  bool connect_in_progress =
      false;                       // CONNECT was delivered and is not completed: other events wait
  bool deciding = false;           // inside the CONNECTING event: tags and all flags may be set
  bool reading_paused = false;     // set_reading(false) was called
  bool closing = false;            // close() was called; nothing more is sent
  std::uint32_t flags = 0;         // kReadonly | kNoProtocol
  std::size_t waiting_bytes = 0;   // in those
  std::size_t waiting_events = 0;  // of this connection, in the slot's queue
  std::string client_id;
  std::string target;
  Headers headers;
  std::vector<std::string> tags;  // without the id, which is always the first tag
  std::string attachment;
};

}  // namespace hearth::runtime
