// What waits for an agent: within bounds, and told if it waits in vain.
#include "runtime/agent_slot.hpp"
#include "runtime/shard.hpp"

#include <utility>

namespace hearth::runtime {
namespace {

// A connection with so many undelivered events is not read from until it has few again.
constexpr std::size_t kPauseReadingAt = 16;
constexpr std::size_t kResumeReadingAt = 4;
// Nor one with so many bytes in them. One frame more may have been read already.
constexpr std::size_t kPauseReadingAtBytes = std::size_t{256} << 10;

// What a client may be refused. The others are the host's own word, and the instance must have it.
bool is_of_client(EventKind kind) {
  return kind == EventKind::kMessage || kind == EventKind::kCall || kind == EventKind::kRequest ||
         kind == EventKind::kStateCheck;
}

}  // namespace

void AgentSlot::enqueue(Incoming incoming) {
  const std::size_t bytes = incoming.name.size() + incoming.body.size();
  if (is_of_client(incoming.kind) && refuses_memory(incoming.connection, bytes)) {
    return refuse_for_memory(incoming);
  }
  const bool full = !has_room_for(bytes);
  if (full && incoming.sink != nullptr) {
    incoming.sink->finish(ResponseHead{503, {}},
                          Error{Errc::kUnavailable, "too many requests wait for this agent"});
    return;
  }
  queue_.push_back(PendingEvent{incoming.kind, incoming.connection, std::string(incoming.name),
                                std::string(incoming.body), incoming.flags,
                                std::move(incoming.sink), std::move(incoming.request),
                                incoming.interruptions, 0});
  note_added(queue_.back(), full);
}

bool AgentSlot::refuses_memory(ConnectionId id, std::size_t bytes) const {
  const Connection* client = shard_.find_connection(id);
  const std::size_t waiting = client == nullptr ? 0 : client->waiting_bytes;
  return shard_.client_memory().refuses(waiting + bytes);
}

void AgentSlot::refuse_for_memory(const Incoming& incoming) {
  const Error error{Errc::kUnavailable, "the server is short of memory: try again later"};
  if (incoming.sink != nullptr) return incoming.sink->finish(ResponseHead{503, {}}, error);
  // To a frame that asks nothing, only the end of the connection is an answer.
  Connection* client = shard_.find_connection(incoming.connection);
  if (client == nullptr || client->closing) return;
  client->closing = true;
  client->port->close(kCloseTryAgainLater, error.message);
}

bool AgentSlot::has_room_for(std::size_t bytes) const {
  return queue_.size() < shard_.limits().max_waiting &&
         queue_bytes_ + bytes <= shard_.limits().max_waiting_bytes;
}

// Puts an event that has come into the queue on its books.
void AgentSlot::note_added(const PendingEvent& event, bool is_full) {
  const std::size_t bytes = event.name.size() + event.body.size();
  queue_bytes_ += bytes;
  held_.set(queue_bytes_);
  if (event.interruptions.count > 0) ++interrupted_waiting_;
  Connection* client = shard_.find_connection(event.connection);
  if (client == nullptr) return;
  ++client->waiting_events;
  client->waiting_bytes += bytes;
  const bool crowded = is_full || client->waiting_events >= kPauseReadingAt ||
                       client->waiting_bytes >= kPauseReadingAtBytes;
  if (crowded && !client->reading_paused && client->state != ConnectionState::kClosed) {
    client->reading_paused = true;
    client->port->set_reading(false);
  }
}

// Takes an event off the books of the queue, which it leaves.
void AgentSlot::note_removed(const PendingEvent& event) {
  const std::size_t bytes = event.name.size() + event.body.size();
  queue_bytes_ -= bytes;
  held_.set(queue_bytes_);
  if (event.interruptions.count > 0 && --interrupted_waiting_ == 0)
    shard_.loop().cancel_timer(std::exchange(interrupted_timer_, 0));
  Connection* client = shard_.find_connection(event.connection);
  if (client == nullptr) return;
  --client->waiting_events;
  client->waiting_bytes -= bytes;
  const bool has_room = client->waiting_events <= kResumeReadingAt &&
                        client->waiting_bytes <= kPauseReadingAtBytes / 2;
  if (client->reading_paused && has_room && client->state != ConnectionState::kClosed) {
    client->reading_paused = false;
    client->port->set_reading(true);
  }
}

void AgentSlot::drop_waiting(ConnectionId id) {
  drop_waiting_if([id](const PendingEvent& event) { return event.connection == id; });
}

void AgentSlot::drop_waiting_if(const std::function<bool(const PendingEvent&)>& is_meant) {
  std::erase_if(queue_, [this, &is_meant](const PendingEvent& event) {
    if (!is_meant(event)) return false;
    note_removed(event);
    return true;
  });
}

void AgentSlot::refuse_waiting(const Error& error, std::uint16_t close_code) {
  leave_room_line();
  for (PendingEvent& event : std::exchange(queue_, {})) {
    note_removed(event);  // and reads on from a client that waited and stays
    Connection* client = shard_.find_connection(event.connection);
    // One that the agent knows gets no second CONNECT any more; but the agent hears of its end.
    if (event.kind == EventKind::kConnect && client != nullptr) client->connect_in_progress = false;
    if (event.sink) {
      if (event.connection == 0 || client != nullptr)
        event.sink->finish(ResponseHead{503, {}}, error);
    } else if (event.kind == EventKind::kClose) {
      forget(event.connection);
    } else if (client != nullptr && !client->closing) {
      // Nothing can be answered to a frame that asks nothing: the client is told by the end of its connection.
      client->closing = true;
      client->port->close(close_code, error.message);
    }
  }
  shard_.remove_if_unused(*this);
}

}  // namespace hearth::runtime
