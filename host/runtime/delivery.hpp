#pragma once
// Which of an agent's waiting events is delivered next.

#include "extensions/call_order.hpp"
#include "runtime/connections.hpp"
#include "runtime/event_queue.hpp"

#include <optional>
#include <string_view>

namespace hearth::runtime {

// What decides it, as it is now (P2 and P8 of AgentSlot). It delivers nothing.
//
// Lifetime   The clients and the agent's class outlive it.
struct Delivery {
  Connections& clients;
  extensions::CallOrder order{};
  bool is_full = false;      // no event of a client may begin, whatever it is
  bool runs_method = false;  // a call or a request is in progress
  bool runs_alone = false;   // it is one that runs alone

  // Whether the event may begin now, if no event waits before it.
  [[nodiscard]] bool may_begin(EventKind kind, std::string_view name, ConnectionId client) const;
  // Takes the first event that may begin, and that waits behind no other.
  [[nodiscard]] std::optional<OwnedEvent> take_next(EventQueue& queue) const;

 private:
  // The client's CONNECT is in progress.
  [[nodiscard]] bool is_connecting(ConnectionId client) const;
  // Calls in progress block this event.
  [[nodiscard]] bool waits_for_calls(EventKind kind, std::string_view name) const;
};

}  // namespace hearth::runtime
