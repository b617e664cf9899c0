#pragma once
// The clients of one shard, by id.

#include "base/client_memory.hpp"
#include "base/logger.hpp"
#include "base/slot_map.hpp"
#include "runtime/connection.hpp"
#include "telemetry/metrics.hpp"

#include <cstddef>
#include <memory>
#include <string_view>

namespace hearth::runtime {

// Promises   An id is used once: find() of a removed client returns null. A Connection does not
//            move. What a client sent when it connected is on the account of client memory: the
//            headers until they are forgotten, the rest as long as the client stays.
// Threads    The shard's.
// Lifetime   The parts outlive it.
class Connections {
 public:
  struct Parts {
    Gauge& count;      // the number of clients
    Counter& dropped;  // by drop_for_memory()
    Logger& logger;
    ClientMemory& memory;
  };
  explicit Connections(const Parts& parts) : parts_(parts) {}

  // Adds a client of `agent`, which outlives it. Its state is kWaiting.
  Connection& add(AgentSlot* agent, ConnectRequest request, std::unique_ptr<ConnectionPort> port);

  // Null if there is none.
  [[nodiscard]] Connection* find(ConnectionId id) { return clients_.find(id); }

  // Destroys the client's port. Does nothing if there is no such client.
  void remove(ConnectionId id);

  // Once: closes the client with 1013, counts it and logs it.
  void drop_for_memory(Connection& client, std::string_view why);

  [[nodiscard]] std::size_t size() const { return clients_.size(); }

 private:
  const Parts parts_;
  SlotMap<Connection> clients_;
};

}  // namespace hearth::runtime
