#pragma once
// The source of an event, and the calls that wait for its answer.

#include "base/work_mark.hpp"
#include "storage/agent_key.hpp"

#include <memory>
#include <string>
#include <vector>

namespace hearth::extensions {

// An agent with a call in progress that waits for another agent.
struct WaitingAgent {
  storage::AgentKey agent;
  bool alone = false;  // its call runs alone: it handles no other one meanwhile (call_order.hpp)

  bool operator==(const WaitingAgent&) const = default;
};

// Immutable: the event, its retries and the calls that it makes share it. An event without an
// origin comes from the sender of its kind (EventRule::sender), and only its sink waits for it.
struct Origin {
  storage::AgentKey agent;   // the caller; no name: a client, an alarm, HTTP or the host
  std::string notification;  // its id, the same at each delivery; empty: not a notification
  unsigned depth = 0;        // the number of calls between agents that wait for it
  // The agents that wait for it, if calls of their class may have to wait for each other.
  std::vector<WaitingAgent> waiting;
  std::string trace;  // traceparent of the span that caused the event; empty: none
  // The claims of the client's token, a JSON object; empty: it sent no token. The claims of an HTTP
  // request are in its head.
  std::string claims = {};
  WorkMark work = {};  // the notification or the alarm that the event delivers

  [[nodiscard]] bool is_agent() const { return !agent.name.empty(); }
};

using OriginPtr = std::shared_ptr<const Origin>;

}  // namespace hearth::extensions
