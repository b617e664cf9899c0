#pragma once
// What the operator may set for one class of agents.
//
// The defaults are those of configuration files: config/class_file.cpp has a row for each setting
// that a file can change.

#include "base/client_rules.hpp"
#include "durable/alarms.hpp"
#include "durable/fibers.hpp"
#include "durable/managed_fibers.hpp"
#include "durable/operations.hpp"
#include "durable/queue.hpp"
#include "durable/schedules.hpp"
#include "storage/agent_database.hpp"
#include "storage/plugin_sql.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace hearth::extensions {

enum class Durability {
  kProcess,  // what was acknowledged survives the end of the process, however it ends
  kPower,    // it survives the loss of power, and its answer waits for the device
};

// Of hearth.kv/1.
struct KvSettings {
  std::size_t max_keys = 10'000;
  std::size_t max_value_bytes = std::size_t{1} << 20;   // of one value
  std::size_t max_total_bytes = std::size_t{50} << 20;  // of all keys and values of an agent
};

// Of the answers to calls that came with a key (extensions/call_answers.hpp).
struct AnswerSettings {
  std::chrono::milliseconds keep{24 * 60 * 60 * 1000};
  std::size_t max_answers = 10'000;                     // of one agent
  std::size_t max_total_bytes = std::size_t{64} << 20;  // of one agent
};

// How much the agents of a class may ask of other servers. What counts is kept over restarts.
struct EgressLimits {
  std::uint32_t requests_per_minute = 0;  // of the wall clock; 0: no limit
  std::uint32_t concurrent = 1000;        // requests in progress
  std::size_t bytes_per_day = 0;          // of UTC; bodies, both ways; 0: no limit
};

// Of hearth.fetch/1: where the agents of a class may send requests to.
struct EgressSettings {
  std::vector<std::string> allow;  // see base/egress_rules.hpp
  std::vector<std::string> deny;
  std::string proxy;                                     // a URL; empty: none
  std::map<std::string, std::filesystem::path> secrets;  // by the name that the code knows
  EgressLimits limits;
  bool http2 = true;  // for requests that ask for it
};

// Shared by those that read it while the operator sets another one.
using EgressPtr = std::shared_ptr<const EgressSettings>;

// For one class of agents.
struct ClassSettings {
  // Of RuntimeLimits and NetOptions, where a class needs other ones; 0: the server's.
  std::chrono::milliseconds call_timeout{0};
  std::size_t max_frame = 0;

  // Bytes of any one value that an agent keeps: of SQL, its state, a snapshot, a payload. 2 MiB is
  // what our users' platforms allow. The parts below have a limit each; an operator sets all as
  // one.
  static constexpr std::size_t kMaxValue = std::size_t{2} << 20;

  // URL segments under which clients find the class besides its own. No agent sees them: whoever
  // routes clients reads them where they are kept as one table (runtime/class_registry.hpp).
  std::vector<std::string> aliases;

  // Whether a client is told the class and the name of its agent when it connects.
  bool send_identity = true;

  // Whether everybody may read the class's methods (runtime/agent_class.hpp), not administrators
  // alone. Who may be a client of the agents, and which pages may read their answers. No agent sees
  // these: they are in a table as well, and hold whichever version of the class is served.
  bool list_methods = false;
  AuthRules auth;
  CorsRules cors;
  [[nodiscard]] EntryRules entry_rules() const {
    return {.auth = auth, .cors = cors, .list_methods = list_methods};
  }

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
  durable::OperationSettings operations{.max_result_bytes = kMaxValue};
  KvSettings kv;
  // Agents do not read it here: AgentContext::egress() is what holds, whichever version of the
  // class is served.
  EgressSettings egress;

  // An agent of the class handles one call at a time: the next one begins when it is answered.
  bool serial_calls = false;

  // Clients may call its agents over plain HTTP (api/objects_endpoint.hpp), and the directory lists
  // each of them as soon as it has started. In files some other defaults go with it.
  bool is_object = false;

  // One call over plain HTTP, parts of its answer included, until its caller gets a time-out. 0:
  // limits.call_timeout.
  std::chrono::milliseconds object_call_timeout{30'000};

  AnswerSettings answers;
  durable::AlarmSettings alarms;

  // How soon an agent that kept itself alive is back at the latest when it was lost though the
  // process lives on: when its storage failed.
  std::chrono::milliseconds keep_alive_interval{30'000};

  storage::AgentDatabaseOptions database;  // the runtime sets `sync`
  std::string options = "{}";              // JSON object handed to the plugin
};

}  // namespace hearth::extensions
