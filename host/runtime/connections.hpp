#pragma once
// The clients of one shard, by id.

#include "base/slot_map.hpp"
#include "runtime/connection.hpp"
#include "telemetry/metrics.hpp"

#include <cstddef>
#include <memory>

namespace hearth::runtime {

// Promises   An id is used once: find() of a client that was removed gives null. A Connection does
//            not move.
// Threads    The shard's.
// Lifetime   The gauge outlives it.
class Connections {
 public:
  // `count` always says how many there are.
  explicit Connections(Gauge& count) : count_(count) {}

  // A new client of `agent`, which outlives it; in state kWaiting.
  Connection& add(AgentSlot* agent, ConnectRequest request, std::unique_ptr<ConnectionPort> port);

  // Null if there is none.
  [[nodiscard]] Connection* find(ConnectionId id) { return clients_.find(id); }

  // Does nothing if there is none. Its port is destroyed.
  void remove(ConnectionId id);

  [[nodiscard]] std::size_t size() const { return clients_.size(); }

 private:
  Gauge& count_;
  SlotMap<Connection> clients_;
};

}  // namespace hearth::runtime
