#pragma once
// The command line as values. Mistakes and help are values too.

#include "config/config.hpp"
#include "diagnosis/exit_status.hpp"
#include "telemetry/stderr_logger.hpp"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace hearth::cli {

// Which data directory: `data`, else the one that the server file says.
struct DataFlags {
  std::optional<std::filesystem::path> config;
  std::optional<std::filesystem::path> data;
};

// An absent flag leaves the value to the configuration file, and then to the default.
struct ConfigurationFlags : DataFlags {
  std::optional<config::ListenAddress> listen;
  std::vector<std::filesystem::path> plugins;  // empty: absent; replaces the file's list
  std::optional<unsigned> shards;
  std::optional<LogLevel> log_level;
  std::optional<LogFormat> log_format;
  bool show_failures = false;  // RuntimeLimits::show_failures
};

// hearth serve
struct ServeCommand : ConfigurationFlags {
  bool check_config = false;
  bool supervised = false;                   // run in a child, which is restarted when it crashes
  std::vector<std::string> child_arguments;  // of that child (supervisor.hpp)
  int supervisor_descriptor = -1;            // not -1: this process is that child
};

// hearth dev
struct DevCommand : ConfigurationFlags {
  std::vector<std::string> child_arguments;  // of the server (supervisor.hpp)
};

// hearth config
struct ConfigCommand : ConfigurationFlags {
  std::string agent_class;  // empty: the server, and each class that has a file
  bool json = false;
  std::string reference;  // "server" or "class": print this of config/README.md
};

// hearth new
struct NewCommand {
  std::string name;
  std::filesystem::path directory;  // of the project; absent on the command line: ./NAME
};

// hearth check
struct CheckCommand {
  std::filesystem::path library;
  bool json = false;
  bool only_failed = false;
  std::optional<std::filesystem::path> data;  // of the server that wants the record of the check
  std::uint64_t seed = 1;
  std::chrono::milliseconds time_limit{10'000};  // of one case
  std::optional<std::string> options;            // JSON for create()
  std::vector<std::string> methods;              // to call; empty: those found in the library
  bool calls_nothing = false;
  std::optional<std::filesystem::path> older;  // the version of the library before
  std::vector<std::string> excluded;           // ids
  std::vector<std::string> only;               // ids
};

// hearth quarantine
struct QuarantineCommand : DataFlags {
  std::string release;  // a class; empty: list
  bool json = false;
};

// hearth audit
struct AuditCommand : DataFlags {
  unsigned lines = 100;  // of the last entries
  bool follow = false;   // also new entries
  bool json = false;
  std::string event;
  std::string actor;
  std::string agent_class;
  std::string agent;
  std::optional<std::chrono::milliseconds> since;  // not older than this
};

// hearth tail
struct TailCommand : DataFlags {
  bool json = false;
  std::string agent;  // CLASS/NAME or CLASS; empty: all
  std::string trace;
  std::string level = "info";
  std::optional<std::chrono::milliseconds> since;  // also what is not older than this
};

// hearth repair
struct RepairCommand : DataFlags {
  bool forget_missing = false;
};

// hearth backup, restore, verify
struct BackupCommand : DataFlags {
  enum class What { kBackup, kRestore, kVerify };
  What what = What::kBackup;
  std::filesystem::path directory;
  std::optional<std::uint64_t> rate;  // of backup: bytes a second
  bool cancel = false;                // of backup: the one in progress
  std::string agent;                  // of restore: CLASS/NAME; empty: all
  bool replace = false;               // of restore
};

// The commands that ask a running server: hearth plugins, reload, methods, agents, evict, destroy,
// call, operations, resolve, fibers, schedules, queue, chats, sql.
struct AdminCommand : DataFlags {
  enum class What {
    kConsole,
    kPlugins,
    kReload,
    kTakeBack,
    kMethods,
    kAgents,
    kEvict,
    kDestroy,
    kCall,
    kWhy,
    kStuck,
    kOperations,
    kResolve,
    kChats,
    kWork,
    kSql
  };
  What what = What::kPlugins;
  bool json = false;
  bool all = false;         // of plugins: old versions, too; of stuck: each agent
  bool wait = false;        // of reload: until the agents have moved
  std::string agent_class;  // of reload and operations: may be empty
  std::string name;         // of evict and destroy; of operations, why: may be empty; of call: the
                            // object's id
  std::string method;       // of call
  std::string arguments;    // of call: JSON; empty: none
  bool yes = false;         // of destroy: without a question
  std::string after;        // of agents and operations
  unsigned limit = 100;     // the same
  std::string kind;         // of operations
  std::string state;        // of operations: with commas; of resolve: the outcome
  std::optional<std::chrono::milliseconds> older;  // of operations: began this long ago
  std::string id;                                  // of operations and resolve
  std::string result;                              // of resolve: JSON; empty: none
  std::string note;                                // of resolve and work
  std::string action;                              // of work: list, show, or a change
  std::string as_typed;                            // the command for a shell, without --after
};

// A text to print before the process ends.
struct Answer {
  int status = kExitClean;
  std::string text;  // to stdout if the status is clean, else to stderr; ends with a line feed
};

using Command = std::variant<ServeCommand, DevCommand, ConfigCommand, NewCommand, QuarantineCommand,
                             RepairCommand, BackupCommand, CheckCommand, AdminCommand, AuditCommand,
                             TailCommand, Answer>;

// Help, the version and every mistake are an Answer. Reads no file.
[[nodiscard]] Command parse_command_line(int argc, const char* const* argv);

}  // namespace hearth::cli
