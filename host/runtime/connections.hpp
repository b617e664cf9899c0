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

// Promises   An id is used once: find() of a client that was removed gives null. A Connection does
//            not move. What a client has said when it connected is on the account of client
//            memory: the headers until they are forgotten, the rest as long as the client stays.
// Threads    The shard's.
// Lifetime   The parts outlive it.
class Connections {
 public:
  struct Parts {
    Gauge& count;      // always says how many there are
    Counter& dropped;  // by drop_for_memory()
    Logger& logger;
    ClientMemory& memory;
  };
  explicit Connections(const Parts& parts) : parts_(parts) {}

  // A new client of `agent`, which outlives it; in state kWaiting.
  Connection& add(AgentSlot* agent, ConnectRequest request, std::unique_ptr<ConnectionPort> port);

  // Null if there is none.
  [[nodiscard]] Connection* find(ConnectionId id) { return clients_.find(id); }

  // Does nothing if there is none. Its port is destroyed.
  void remove(ConnectionId id);

  // Ends the client with 1013, counts that and tells the log; once.
  void drop_for_memory(Connection& client, std::string_view why);

  [[nodiscard]] std::size_t size() const { return clients_.size(); }

 private:
  const Parts parts_;
  SlotMap<Connection> clients_;
};

}  // namespace hearth::runtime
