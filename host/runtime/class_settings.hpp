#pragma once
// What the operator may set: for the whole runtime, and for one class.
//
// The defaults are those of configuration files (config/class_file.cpp has a row for each).

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
  kPower,    // it survives the loss of power, and its answer waits for the device
};

// For one class of agents.
struct ClassSettings {
  // Bytes of any one value that an agent keeps: of SQL, its state, a snapshot, a payload. 2 MiB is
  // what our users' platforms allow. The parts below have a limit each; an operator sets all as
  // one.
  static constexpr std::size_t kMaxValue = std::size_t{2} << 20;

  Durability durability = Durability::kProcess;

  // How long without an event before an agent leaves memory. Waking costs about a millisecond, so
  // a minute is for the memory of clients that ask in bursts.
  std::chrono::milliseconds idle_timeout{60'000};

  // How long on_evict may take. 0: none, eviction is sudden; a kill is, too.
  std::chrono::milliseconds evict_grace{0};

  // Events in progress at once in one agent; past it they are refused.
  std::size_t max_events = 1000;

  std::size_t max_state_bytes = kMaxValue;
  storage::PluginSqlLimits sql{.max_value_bytes = kMaxValue};
  durable::FiberSettings fibers{.max_snapshot_bytes = kMaxValue};
  durable::ManagedSettings managed{.max_json_bytes = kMaxValue};
  durable::ScheduleSettings schedules{.max_payload_bytes = kMaxValue};
  durable::QueueSettings queue{.max_payload_bytes = kMaxValue};

  // How soon an agent that kept itself alive is back at the latest when it was lost though the
  // process lives on: when its storage failed.
  std::chrono::milliseconds keep_alive_interval{30'000};

  storage::AgentDatabaseOptions database;  // the runtime sets `sync`
  std::string options = "{}";              // JSON object handed to the plugin
};

// For every shard.
struct RuntimeLimits {
  // Agents in memory at once, of the whole server, shared evenly by the shards. 10000 idle ones are
  // some 640 MB at the goal of 64 KiB each.
  std::size_t max_live_agents = 10'000;

  // Events that wait for one agent to start; past it they are refused. And the bytes in them.
  std::size_t max_waiting = 1000;
  std::size_t max_waiting_bytes = std::size_t{64} << 20;

  // Bytes that are held for all clients together: what they have sent in part, what waits for
  // agents, and what they have not read yet. Past it, who needs more is refused. A quarter of a
  // small machine.
  std::size_t client_memory = std::size_t{256} << 20;

  std::size_t max_operations = 1000;                     // of one agent in flight
  std::size_t max_answer_bytes = std::size_t{16} << 20;  // of one answer or frame
  std::size_t max_recovering = 64;                       // agents at once, of the whole server
  std::size_t max_waking = 64;                           // ... that start because a time has come

  // Percent of an event loop's time in which interrupted work is recovered while clients use the
  // loop. It is theirs otherwise: the smaller the share, the less they notice of a restart, and the
  // longer it takes until the last fiber goes on.
  int recovery_share = 6;

  // How long waking an agent may take, its own on_start included.
  std::chrono::milliseconds start_timeout{10'000};

  // How long one event may be in progress before its caller gets a time-out; each part of a
  // streaming answer starts it anew. Minutes, because agents wait for language models and for
  // people's servers.
  std::chrono::milliseconds event_timeout{300'000};
};

}  // namespace hearth::runtime
