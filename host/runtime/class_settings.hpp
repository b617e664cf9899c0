#pragma once
// What the operator may set: for the whole runtime, and for one class.

#include "durable/fibers.hpp"
#include "storage/agent_database.hpp"
#include "storage/plugin_sql.hpp"

#include <chrono>
#include <cstddef>
#include <string>

namespace hearth::runtime {

// For one class of agents.
struct ClassSettings {
  std::chrono::milliseconds idle_timeout{60'000};  // without events and traffic, until eviction
  std::chrono::milliseconds evict_grace{0};        // for EventKind::kEvict; 0: eviction is sudden
  std::size_t max_events = 1000;                   // of one agent in progress at once; more wait
  std::size_t max_state_bytes = std::size_t{2} << 20;
  storage::PluginSqlLimits sql;
  durable::FiberSettings fibers;
  storage::AgentDatabaseOptions database;
  std::string options = "{}";  // JSON object handed to the plugin
};

// For every shard.
struct RuntimeLimits {
  std::size_t max_live_agents = 10'000;  // of the whole server, shared evenly by the shards
  std::size_t max_waiting = 1000;        // events behind the start gate of one agent
  std::size_t max_waiting_bytes = std::size_t{64} << 20;  // in them
  std::size_t max_operations = 1000;                      // of one agent in flight
  std::size_t max_answer_bytes = std::size_t{16} << 20;   // of one answer or frame
  std::size_t max_recovering = 64;                        // agents at once, of the whole server
  std::chrono::milliseconds start_timeout{10'000};
  std::chrono::milliseconds event_timeout{
      300'000};  // each part of a streaming answer starts it anew
};

}  // namespace hearth::runtime
