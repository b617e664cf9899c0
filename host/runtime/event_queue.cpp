#include "runtime/event_queue.hpp"

#include "runtime/call_sink.hpp"

#include <algorithm>

namespace hearth::runtime {
namespace {

// A connection with so many waiting events is not read until it has few again.
constexpr std::size_t kPauseReadingAt = 16;
constexpr std::size_t kResumeReadingAt = 4;
// The same for so many bytes in them. One more frame may have been read already.
constexpr std::size_t kPauseReadingAtBytes = std::size_t{256} << 10;

}  // namespace

void EventQueue::push(Event event) {
  const std::size_t bytes = text_bytes(event);
  const bool is_clients =
      rule_of(event.kind).sender == EventSender::kClient || event.kind == EventKind::kConnect;
  if (is_clients && refuses_memory(event, bytes)) return refuse_for_memory(event);
  const bool is_full = !has_room_for(bytes);
  if (is_full && event.sink != nullptr) {
    event.sink->finish(ResponseHead{503, {}},
                       Error{Errc::kUnavailable, "too many requests wait for this agent"});
    return;
  }
  add(events_.end(), own(std::move(event)), is_full);
}

void EventQueue::put_back(std::vector<OwnedEvent> events, const Error& no_room) {
  const auto front = events_.begin();
  for (OwnedEvent& event : events) {
    const bool is_full = !has_room_for(text_bytes(event));
    if (is_full && rule_of(event.kind).sender == EventSender::kClient) {
      event.sink->finish(ResponseHead{503, {}}, no_room);
      continue;
    }
    add(front, std::move(event), is_full);
  }
}

bool EventQueue::has_close_of(ConnectionId client) const {
  return std::ranges::any_of(events_, [client](const OwnedEvent& event) {
    return event.kind == EventKind::kClose && event.connection == client;
  });
}

SteadyTime EventQueue::next_due() const {
  SteadyTime first = SteadyTime::max();
  if (timed_ == 0) return first;
  for (const OwnedEvent& event : events_) {
    if (event.interruptions.has_due()) first = std::min(first, event.interruptions.due);
  }
  return first;
}

void EventQueue::forget_state_writes() {
  for (OwnedEvent& event : events_) event.state_write = 0;
}

bool EventQueue::has_room_for(std::size_t bytes) const {
  return events_.size() < limits_.max_waiting && held_.bytes() + bytes <= limits_.max_waiting_bytes;
}

// Heads of requests count beside the texts, because they wait with them.
bool EventQueue::refuses_memory(const Event& event, std::size_t bytes) const {
  const auto bytes_of = [](const std::optional<HeldBytes>& held) {
    return held ? held->bytes() : std::size_t{0};
  };
  if (event.request != nullptr) bytes += bytes_of(event.request->held);
  if (const Connection* client = clients_.find(event.connection))
    bytes += client->waiting_bytes + bytes_of(client->held);
  return memory_.refuses(bytes);
}

void EventQueue::refuse_for_memory(const Event& event) {
  const Error error{Errc::kUnavailable, "the server is short of memory: try again later"};
  if (event.sink != nullptr) return event.sink->finish(ResponseHead{503, {}}, error);
  // A frame without a sink has no answer but the end of the connection.
  if (Connection* client = clients_.find(event.connection))
    clients_.drop_for_memory(*client, error.message);
}

void EventQueue::add(std::list<OwnedEvent>::iterator before, OwnedEvent event, bool is_full) {
  const std::size_t bytes = text_bytes(event);
  held_.set(held_.bytes() + bytes);
  if (event.interruptions.has_due()) ++timed_;
  Connection* client = clients_.find(event.connection);
  events_.insert(before, std::move(event));
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

OwnedEvent EventQueue::take(std::list<OwnedEvent>::iterator at) {
  OwnedEvent event = std::move(*at);
  events_.erase(at);
  const std::size_t bytes = text_bytes(event);
  held_.set(held_.bytes() - bytes);
  if (event.interruptions.has_due()) --timed_;
  Connection* client = clients_.find(event.connection);
  if (client == nullptr) return event;
  --client->waiting_events;
  client->waiting_bytes -= bytes;
  const bool has_room = client->waiting_events <= kResumeReadingAt &&
                        client->waiting_bytes <= kPauseReadingAtBytes / 2;
  if (client->reading_paused && has_room && client->state != ConnectionState::kClosed) {
    client->reading_paused = false;
    client->port->set_reading(true);
  }
  return event;
}

}  // namespace hearth::runtime
