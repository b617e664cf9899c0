#include "runtime/delivery.hpp"

#include <algorithm>
#include <vector>

namespace hearth::runtime {

bool Delivery::is_connecting(ConnectionId client) const {
  const Connection* const found = clients.find(client);
  return found != nullptr && found->connect_in_progress;
}

bool Delivery::waits_for_calls(EventKind kind, std::string_view name) const {
  return rule_of(kind).runs_method && runs_method && (runs_alone || order.runs_alone(kind, name));
}

bool Delivery::may_begin(EventKind kind, std::string_view name, ConnectionId client) const {
  if (is_full) return false;
  if (waits_for_calls(kind, name)) return false;
  return client == 0 || kind == EventKind::kConnect || !is_connecting(client);
}

std::optional<OwnedEvent> Delivery::take_next(EventQueue& queue) const {
  // A client's later events wait behind its waiting call. Clients' calls wait behind a waiting call
  // that runs alone.
  std::vector<ConnectionId> held;
  bool one_waits_alone = false;
  return queue.take_first([&](const OwnedEvent& each) {
    if (std::ranges::find(held, each.connection) != held.end()) return false;
    const bool is_method = rule_of(each.kind).runs_method;
    const bool is_agents = each.origin && each.origin->is_agent();
    const bool is_behind = one_waits_alone && is_method && !is_agents;
    if (!is_behind && may_begin(each.kind, each.name, each.connection)) return true;
    if (each.connection != 0 && order.holds_calls()) held.push_back(each.connection);
    // An event that waits for its client's CONNECT does not block other calls.
    one_waits_alone |= waits_for_calls(each.kind, each.name) && !is_connecting(each.connection) &&
                       order.runs_alone(each.kind, each.name);
    return false;
  });
}

}  // namespace hearth::runtime
