// What waits in vain for an agent is told so.
#include "runtime/agent_slot.hpp"
#include "runtime/shard.hpp"

#include <utility>

namespace hearth::runtime {

void AgentSlot::refuse_waiting(const Error& error, std::uint16_t close_code) {
  refuse(queue_.take_if([](const OwnedEvent&) { return true; }), error, close_code);
}

void AgentSlot::refuse(const std::vector<OwnedEvent>& events, const Error& error,
                       std::uint16_t close_code) {
  leave_room_line();
  for (const OwnedEvent& event : events) {
    Connection* client = shard_.find_connection(event.connection);
    // One that the agent knows gets no second CONNECT any more; but the agent hears of its end.
    if (event.kind == EventKind::kConnect && client != nullptr) client->connect_in_progress = false;
    if (event.sink) {
      if (event.connection == 0 || client != nullptr)
        event.sink->finish(ResponseHead{503, {}}, error);
    } else if (event.kind == EventKind::kClose) {
      forget(event.connection);
    } else if (client != nullptr) {
      // Nothing can be answered to a frame that asks nothing: the client is told by the end of its
      // connection.
      client->end(close_code, error.message);
    }
  }
  shard_.remove_if_unused(*this);
}

}  // namespace hearth::runtime
