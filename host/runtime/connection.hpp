#pragma once
// One client of an agent, with its socket.

#include "base/client_memory.hpp"
#include "extensions/client.hpp"
#include "runtime/connection_port.hpp"
#include "runtime/types.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace hearth::runtime {

class AgentInbox;
class AgentSlot;  // NOLINT(cppcoreguidelines-virtual-class-destructor): it is final

// What a client sends when it connects.
struct ConnectRequest {
  std::string id;           // chosen by the client; not unique, not trusted
  std::string target;       // request target as sent: "/agents/counter/a?x=1"
  Headers headers;          // of the upgrade request; forgotten when CONNECT is completed
  std::string claims = {};  // as extensions::Client::claims
};

using extensions::ConnectionState;

// A value of the runtime: only the shard's thread touches it.
struct Connection : extensions::Client {
  // Asks the port to close the socket, once. True: this call did it.
  bool end(std::uint16_t code, std::string_view why);
  // The agent will not ask for the headers any more.
  void forget_headers();

  // The agent it is connected to; outlives the connection.
  AgentSlot* slot = nullptr;
  const AgentInbox* inbox = nullptr;     // of that agent
  std::unique_ptr<ConnectionPort> port;  // never null
  // For its id, target, headers and claims, from Connections::add() on.
  std::optional<HeldBytes> held;
  // CONNECT was delivered and is not completed: other events wait.
  bool connect_in_progress = false;
  // A state was sent to it after its CONNECT. If the client sets the state meanwhile, it shows its
  // own state first and the sent one in the end. It cannot be known when a client has read a frame,
  // so from then on it gets the states that it sets, too.
  bool was_sent_state = false;
  bool reading_paused = false;     // set_reading(false) was called
  std::size_t waiting_bytes = 0;   // in waiting_events
  std::size_t waiting_events = 0;  // of this connection, in the slot's queue
};

}  // namespace hearth::runtime
