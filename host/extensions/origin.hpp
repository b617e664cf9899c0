#pragma once
// Where an event comes from, and what hangs on its answer.

#include "storage/agent_key.hpp"

#include <memory>
#include <string>
#include <vector>

namespace hearth::extensions {

// An agent with a call in progress that waits for another agent.
struct WaitingAgent {
  storage::AgentKey agent;
  bool alone = false;  // its call runs alone (call_order.hpp): it handles no other meanwhile

  bool operator==(const WaitingAgent&) const = default;
};

// Immutable: the event, its repetitions and the calls that it makes share it. An event without one
// comes from whom its kind says (EventRule::sender), and nothing waits for it but its sink.
struct Origin {
  storage::AgentKey agent;   // the caller; no name: a client, an alarm, HTTP or the host
  std::string notification;  // its id, the same at each delivery; empty: it is none
  unsigned depth = 0;        // so many calls between agents wait for it
  // Those that wait for it and are of classes whose calls may hold up each other.
  std::vector<WaitingAgent> waiting;
  std::string trace;  // traceparent: the span that has caused the event; empty: none
  // The claims of the client's token, a JSON object; empty: it has shown no token. Those of an HTTP
  // request are in its head.
  std::string claims = {};

  [[nodiscard]] bool is_agent() const { return !agent.name.empty(); }
};

using OriginPtr = std::shared_ptr<const Origin>;

}  // namespace hearth::extensions
