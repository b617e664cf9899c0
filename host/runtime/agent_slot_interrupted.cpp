// What an eviction has cut off, on its way to the next instance: promise P6.
#include "runtime/agent_slot.hpp"
#include "runtime/shard.hpp"

#include <algorithm>
#include <utility>

namespace hearth::runtime {

void AgentSlot::put_back(std::vector<OwnedEvent> events) {
  if (events.empty()) return;
  std::erase_if(events, [this](const OwnedEvent& event) {
    if (event.kind != EventKind::kConnect) return false;
    Connection* client = shard_.find_connection(event.connection);
    if (client == nullptr) return true;
    client->connect_in_progress = false;  // its other events are behind this one in the queue
    return false;
  });
  queue_.put_back(std::move(events), why_it_ended(reason_));
  shard_.logger().write(LogLevel::kDebug, "agent.interrupted",
                        {{"class", key_.agent_class},
                         {"agent", key_.name},
                         {"reason", to_string(reason_)},
                         {"come_again", queue_.interrupted()}});
  watch_interrupted();
}

void AgentSlot::watch_interrupted() {
  shard_.loop().cancel_timer(std::exchange(interrupted_timer_, 0));
  if (queue_.interrupted() == 0) return;
  interrupted_timer_ = shard_.loop().call_at(queue_.next_due(), [this] {
    interrupted_timer_ = 0;
    expire_interrupted();
  });
}

void AgentSlot::expire_interrupted() {
  const SteadyTime now = shard_.loop().clock().steady_now();
  const auto is_over = [now](const OwnedEvent& event) {
    return event.interruptions.count > 0 && event.interruptions.due <= now;
  };
  for (const OwnedEvent& event : queue_.take_if(is_over)) give_up(event);
  watch_interrupted();
  if (state_ == AgentState::kLive) after_turn();  // what waited behind them
  shard_.remove_if_unused(*this);
}

void AgentSlot::give_up(const OwnedEvent& event) {
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
  client.end(kCloseServiceRestart, "the agent restarted while you connected");
}

}  // namespace hearth::runtime
