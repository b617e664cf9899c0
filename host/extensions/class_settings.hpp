#pragma once
// The settings of one class of agents that the operator may change.
//
// The defaults are those of configuration files: config/class_file.cpp has a row for each setting
// that a file can change.

#include "base/client_rules.hpp"
#include "durable/alarms.hpp"
#include "durable/fibers.hpp"
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
  kProcess,  // acknowledged writes survive every end of the process
  kPower,    // they survive a loss of power; answers wait for the device
};

// For hearth.kv/1.
struct KvSettings {
  std::size_t max_keys = 10'000;
  std::size_t max_value_bytes = std::size_t{1} << 20;   // of one value
  std::size_t max_total_bytes = std::size_t{50} << 20;  // of all keys and values of an agent
};

// For the answers to calls with a key (extensions/call_answers.hpp).
struct AnswerSettings {
  std::chrono::milliseconds keep{24 * 60 * 60 * 1000};
  std::size_t max_answers = 10'000;                     // of one agent
  std::size_t max_total_bytes = std::size_t{64} << 20;  // of one agent
};

// Limits on the requests of a class to other servers. The counts survive restarts.
struct EgressLimits {
  std::uint32_t requests_per_minute = 0;  // per minute of the wall clock; 0: no limit
  std::uint32_t concurrent = 1000;        // requests in progress
  std::size_t bytes_per_day = 0;          // per day of UTC; bodies in both directions; 0: no limit
};

// For hearth.fetch/1: where the agents of a class may send requests.
struct EgressSettings {
  std::vector<std::string> allow;  // see base/egress_rules.hpp
  std::vector<std::string> deny;
  std::string proxy;                                     // a URL; empty: none
  std::map<std::string, std::filesystem::path> secrets;  // by the name that the code uses
  EgressLimits limits;
  bool http2 = true;  // for requests that ask for it
};

// Shared, because readers may hold it while the operator sets another one.
using EgressPtr = std::shared_ptr<const EgressSettings>;

// The settings of one class of agents.
struct ClassSettings {
  // Overrides of RuntimeLimits and NetOptions; 0: the server's value.
  std::chrono::milliseconds call_timeout{0};
  std::size_t max_frame = 0;

  // Bytes of one stored value: of SQL, a state, a snapshot, a payload. Users' platforms allow 2
  // MiB. The parts below have a limit each; an operator sets all of them together.
  static constexpr std::size_t kMaxValue = std::size_t{2} << 20;

  // The class of a library whose code the agents run; empty: the class of the same name. Only the
  // loader uses it (LoaderOptions::names).
  std::string code;

  // Further URL segments under which clients find the class. Agents do not see them. Clients are
  // routed by the table of all aliases (runtime/class_registry.hpp).
  std::vector<std::string> aliases;

  // Whether a client is told the class and the name of its agent when it connects.
  bool send_identity = true;

  // list_methods: whether clients may read the class's methods (runtime/agent_class.hpp), or only
  // administrators. auth: which clients may connect. cors: which pages may read answers. Agents do
  // not see these. They are in a table as well, and hold for all versions of the class.
  bool list_methods = false;
  AuthRules auth;
  CorsRules cors;
  [[nodiscard]] EntryRules entry_rules() const {
    return {.auth = auth, .cors = cors, .list_methods = list_methods};
  }

  // Whether clients read the text of every failure (api/http_errors.hpp).
  bool show_failures = false;

  Durability durability = Durability::kProcess;

  // How long an agent stays in memory without an event. Waking costs about a millisecond, so a
  // minute saves memory and still covers clients that send in bursts.
  std::chrono::milliseconds idle_timeout{60'000};

  // How long on_evict may take. 0: eviction does not call it, and is as sudden as a kill.
  std::chrono::milliseconds evict_grace{0};

  // Events in progress at once in one agent; further events are refused.
  std::size_t max_events = 1000;

  std::size_t max_state_bytes = kMaxValue;
  storage::PluginSqlLimits sql{.max_value_bytes = kMaxValue};
  durable::FiberSettings fibers{.max_snapshot_bytes = kMaxValue, .max_json_bytes = kMaxValue};
  durable::ScheduleSettings schedules{.max_payload_bytes = kMaxValue};
  durable::QueueSettings queue{.max_payload_bytes = kMaxValue};
  durable::OperationSettings operations{.max_result_bytes = kMaxValue};
  KvSettings kv;
  // Agents do not read it here: AgentContext::egress() has the rules that hold, for all versions of
  // the class.
  EgressSettings egress;

  // An agent of the class handles one call at a time: the next one begins after the answer.
  bool serial_calls = false;

  // Clients may call its agents over plain HTTP (api/objects_endpoint.hpp), and the directory lists
  // each agent as soon as it has started. In files it changes some other defaults.
  bool is_object = false;

  // The timeout of a call over plain HTTP, parts of its answer included. 0: limits.call_timeout.
  std::chrono::milliseconds object_call_timeout{30'000};

  AnswerSettings answers;
  durable::AlarmSettings alarms;

  // An agent that kept itself alive may lose its instance while the process lives, because its
  // storage failed. It is then loaded again within this time.
  std::chrono::milliseconds keep_alive_interval{30'000};

  storage::AgentDatabaseOptions database;  // the runtime sets `sync`
  std::string options = "{}";              // JSON object handed to the plugin
};

}  // namespace hearth::extensions
