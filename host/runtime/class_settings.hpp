#pragma once
// What the operator may set: for the whole runtime, and for one class.

#include "durable/fibers.hpp"
#include "durable/managed_fibers.hpp"
#include "durable/queue.hpp"
#include "durable/schedules.hpp"
#include "storage/agent_database.hpp"
#include "storage/plugin_sql.hpp"

#include <chrono>
#include <cstddef>
#include <string>

namespace hearth::runtime {

enum class Durability {
  kProcess,  // what was acknowledged survives the end of the process, however it ends
  kPower,    // it survives the loss of power
};

// For one class of agents.
struct ClassSettings {
  Durability durability = Durability::kProcess;
  std::chrono::milliseconds idle_timeout{60'000};  // without events and traffic, until eviction
  std::chrono::milliseconds evict_grace{0};        // for EventKind::kEvict; 0: eviction is sudden
  std::size_t max_events = 1000;                   // of one agent in progress at once; more wait
  std::size_t max_state_bytes = std::size_t{2} << 20;
  storage::PluginSqlLimits sql;
  durable::FiberSettings fibers;
  durable::ManagedSettings managed;
  durable::ScheduleSettings schedules;
  durable::QueueSettings queue;
  // An agent that was lost while it kept itself alive, though the process lives on (its storage broke), is woken again after
  // at most so long.
  std::chrono::milliseconds keep_alive_interval{30'000};
  storage::AgentDatabaseOptions database;  // the runtime sets `sync`
  std::string options = "{}";              // JSON object handed to the plugin
};

// For every shard.
struct RuntimeLimits {
  std::size_t max_live_agents = 10'000;  // of the whole server, shared evenly by the shards
  std::size_t max_waiting = 1000;        // events behind the start gate of one agent
  std::size_t max_waiting_bytes = std::size_t{64} << 20;  // in them
  std::size_t client_memory = std::size_t{256} << 20;     // held for clients, the whole server
  std::size_t max_operations = 1000;                      // of one agent in flight
  std::size_t max_answer_bytes = std::size_t{16} << 20;   // of one answer or frame
  std::size_t max_recovering = 64;                        // agents at once, of the whole server
  std::size_t max_waking = 64;                            // ... that start because a time has come
  int recovery_share = 6;  // percent of a shard's time for recovery while clients use it
  std::chrono::milliseconds start_timeout{10'000};
  std::chrono::milliseconds event_timeout{
      300'000};  // each part of a streaming answer starts it anew
};

}  // namespace hearth::runtime
