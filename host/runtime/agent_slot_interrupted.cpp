// What an eviction has cut off, on its way to the next instance: promise P6.
#include "runtime/agent_slot.hpp"
#include "runtime/shard.hpp"

#include <algorithm>
#include <utility>

namespace hearth::runtime {

void AgentSlot::put_back(std::vector<InterruptedEvent> events) {
  if (events.empty()) return;
  const auto front = queue_.begin();
  for (InterruptedEvent& event : events) {
    const bool is_full = !has_room_for(event.name.size() + event.body.size());
    if (event.kind == EventKind::kConnect) {
      Connection* client = shard_.find_connection(event.connection);
      if (client == nullptr) continue;
      client->connect_in_progress = false;  // its other events are behind this one in the queue
    } else if (is_full) {
      event.sink->finish(ResponseHead{503, {}}, why_it_ended(reason_));
      continue;
    }
    const auto at =
        queue_.insert(front, PendingEvent{event.kind, event.connection, std::move(event.name),
                                          std::move(event.body), 0, std::move(event.sink), nullptr,
                                          event.interruptions});
    note_added(*at, is_full);
  }
  shard_.logger().write(LogLevel::kDebug, "agent.interrupted",
                        {{"class", key_.agent_class},
                         {"agent", key_.name},
                         {"reason", to_string(reason_)},
                         {"come_again", interrupted_waiting_}});
  watch_interrupted();
}

void AgentSlot::watch_interrupted() {
  shard_.loop().cancel_timer(std::exchange(interrupted_timer_, 0));
  if (interrupted_waiting_ == 0) return;
  SteadyTime first = SteadyTime::max();
  for (const PendingEvent& event : queue_) {
    if (event.interruptions.count > 0) first = std::min(first, event.interruptions.due);
  }
  interrupted_timer_ = shard_.loop().call_at(first, [this] {
    interrupted_timer_ = 0;
    expire_interrupted();
  });
}

void AgentSlot::expire_interrupted() {
  const SteadyTime now = shard_.loop().clock().steady_now();
  for (auto at = queue_.begin(); at != queue_.end();) {
    if (at->interruptions.count == 0 || at->interruptions.due > now) {
      ++at;
      continue;
    }
    PendingEvent event = std::move(*at);
    at = queue_.erase(at);
    note_removed(event);
    give_up(std::move(event));
  }
  watch_interrupted();
  if (state_ == AgentState::kLive) after_turn();  // what waited behind them
  shard_.remove_if_unused(*this);
}

void AgentSlot::give_up(PendingEvent event) {
  shard_.logger().write_limited(
      LogLevel::kWarn, "agent.event_timed_out", {key_.agent_class, to_string(event.kind)},
      {{"class", key_.agent_class}, {"agent", key_.name}, {"event", to_string(event.kind)}});
  Connection* client = shard_.find_connection(event.connection);
  if (event.kind == EventKind::kConnect) {
    if (client != nullptr) part_with_unconnected(*client);
  } else if (event.sink && (event.connection == 0 || client != nullptr)) {
    event.sink->finish(ResponseHead{504, {}},
                       Error{Errc::kTimeout, "the agent did not answer in time"});
  }
}

void AgentSlot::part_with_unconnected(Connection& client) {
  client.connect_in_progress = false;
  if (client.state == ConnectionState::kClosed) return;
  client.state = ConnectionState::kOpen;  // its end is an event
  if (std::exchange(client.closing, true)) return;
  client.port->close(kCloseServiceRestart, "the agent restarted while you connected");
}

}  // namespace hearth::runtime
