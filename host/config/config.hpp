#pragma once
// The configuration as values: what a server and its classes may be told, and the defaults.
//
// Each field says its unit, its default and why that one. config/README.md is the reference for people; the
// bounds that a file is held to stand beside the parsers (server_file.cpp, class_file.cpp).

#include "base/logger.hpp"
#include "json/json.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::config {

// Where the server answers. units.hpp parses and prints it.
struct ListenAddress {
  std::string host =
      "127.0.0.1";            // IPv4, IPv6 without brackets, or a name; no name is looked up yet
  std::uint16_t port = 8787;  // 0: the system chooses

  bool operator==(const ListenAddress&) const = default;
};

// Bounds on what clients and agents may take from the whole server.
struct ServerLimits {
  // Agents in memory at once. 10000 idle ones are some 640 MB at the goal of 64 KiB each.
  std::uint32_t max_live_agents = 10'000;

  // Open sockets, over all agents. Each is a file descriptor and some 16 KiB.
  std::uint32_t max_connections = 10'000;

  // Bytes of one WebSocket message from a client. 4 MiB is past any sensible message of an agent, and
  // what a hundred hostile clients could hold of it still fits in memory.
  std::size_t max_frame_bytes = 4U << 20U;

  // Bytes of one HTTP request's body, for the same reasons.
  std::size_t max_body_bytes = 4U << 20U;

  // Bytes that wait for one client that reads slowly; past half of it the client is not read from, past all of it it
  // is disconnected.
  std::size_t send_queue_bytes = 4U << 20U;

  // Bytes that are held for all clients together: what they have sent in part, what waits for agents, and what
  // they have not read yet. Past it, who needs more is refused. A quarter of a small machine.
  std::size_t client_memory_bytes = 256U << 20U;

  // Bytes a second that a client must send of an unfinished body or message, or take of what waits for it.
  std::size_t min_rate = 1024;

  // Bytes of an agent's name. Long enough for a URL or two UUIDs, short enough for a log line.
  std::size_t max_name_bytes = 256;

  // How long waking an agent may take, its own on_start included.
  std::chrono::milliseconds start_timeout{10'000};

  // How long one event may be in progress before its caller gets a time-out. Minutes, because
  // agents wait for language models and for people's servers.
  std::chrono::milliseconds call_timeout{300'000};

  // Events that wait for one agent to start; past it they are refused.
  std::uint32_t max_waiting = 1000;

  // Percent of an event loop's time in which interrupted work is recovered while clients use the loop. It is theirs otherwise: the
  // smaller the share, the less they notice of a restart, and the longer it takes until the last fiber goes on.
  std::uint32_t recovery_share = 6;

  // How long turns in progress may go on once the server is told to stop. A service manager kills
  // after 90 s by default, a container runtime after 10 s: this is for what comes before the kill.
  std::chrono::milliseconds shutdown_grace{10'000};

  // How often a client is asked whether it is still there; 0: never. Below the 60 s after which
  // common proxies drop a silent connection.
  std::chrono::milliseconds ping_interval{30'000};

  // How long the answer to a ping may take before the connection counts as dead.
  std::chrono::milliseconds ping_timeout{10'000};

  // From a TCP connection to the end of its TLS handshake and its first request's head.
  std::chrono::milliseconds handshake_timeout{10'000};

  // How long an HTTP connection is kept between two requests.
  std::chrono::milliseconds http_idle_timeout{60'000};

  // How long one call into a library may keep its event loop until it is logged; 0: it is not. Others' agents wait meanwhile.
  std::chrono::milliseconds soft_hang{1'000};

  // ... until the server ends, to be started again by whoever supervises it; 0: never. Longer than any honest call.
  std::chrono::milliseconds hard_hang{60'000};
};

enum class ReloadPolicy {
  kEvict,  // agents move to a new version of their code at once
  kDrain,  // each at its next idle moment
};

// What happens when a library is replaced while the server runs.
struct ReloadConfig {
  // Whether the plugin directories and the class files are watched; else the server looks only when it is told to.
  bool watch = true;

  // How long all must have been quiet in a directory before a change counts: copying takes steps.
  std::chrono::milliseconds quiet_time{300};

  ReloadPolicy policy = ReloadPolicy::kEvict;

  // Under kDrain: when the agents that were never idle move all the same. A minute is longer than most answers take.
  std::chrono::milliseconds drain_deadline{60'000};

  // Agents that move to a new version before all others do; 0: none. Few enough to hurt few, enough to tell.
  std::uint32_t trial_agents = 5;

  // Percent of them that may fail to start on it; if more do, the old version goes on.
  std::uint32_t max_failed_percent = 20;

  // How long their starts are waited for.
  std::chrono::milliseconds trial_time{30'000};

  // How long a version that has taken the place of another one must run after that until it counts as proven; 0: not at all. If it ends the
  // server before, the one before it is served after the restart. Long enough for agents to be used once.
  std::chrono::milliseconds probation{60'000};

  // Versions whose code should have gone and cannot be unloaded: when there are so many, a library that would add to them is not replaced.
  std::uint32_t max_pinned = 8;

  // How long the clients of a library that was removed wait for it to come back.
  std::chrono::milliseconds removal_grace{10'000};
};

// Who may ask for /admin.
struct AdminConfig {
  // The file with the token; absolute once loaded. Empty: "admin.token" in the data directory, which the server makes.
  std::filesystem::path token_file;
};

struct LogSettings {
  LogLevel level = LogLevel::kInfo;
  LogFormat format = LogFormat::kAuto;  // kAuto: for people on a terminal, JSON otherwise
};

// The server file, config/hearth.yaml.
struct ServerConfig {
  ListenAddress listen;                 // this machine only, until somebody decides otherwise
  std::filesystem::path data = "data";  // absolute once loaded
  std::vector<std::filesystem::path> plugins = {"plugins"};  // directories; absolute once loaded
  bool names_plugins = false;                                // the file does: no other will do
  // Whether a library is refused until it has passed `hearth check --data <data>`. Off: whoever may write the plugin
  // directories is trusted to have done so.
  bool require_checked = false;
  std::filesystem::path classes = "classes";  // directory of class files; absolute once loaded
  std::optional<unsigned> shards;             // event loops; absent: one a core
  // Pages that may use the server beside its own, as "https://app.example", "null" or "*"; and names that it may be
  // asked by, as "app.example" with or without a port, or "*". api/origin_rules.hpp says what holds without them.
  std::vector<std::string> allowed_origins;
  std::vector<std::string> allowed_hosts;
  ServerLimits limits;
  ReloadConfig reload;
  AdminConfig admin;
  LogSettings log;
};

enum class Durability {
  kProcess,  // an acknowledged write survives the death of the process
  kPower,    // it survives the loss of power, and its answer waits for the device
};

// Bounds on what one agent of a class may take.
struct ClassLimits {
  // Bytes of one SQL value, or of the agent's state. 2 MiB is what our users' platforms allow.
  std::size_t max_value_bytes = 2U << 20U;

  // Bytes of one SQL statement. Values belong in variables, so 256 KiB is generous.
  std::size_t max_sql_bytes = 256U << 10U;

  // Variables of one SQL statement. Ten columns for a hundred rows.
  std::uint32_t max_variables = 1000;

  // Wall time of one SQL statement: it stops the shard, and every agent there, that long.
  std::chrono::milliseconds sql_time{5000};

  // Events in progress at once in one agent; past it they are refused.
  std::uint32_t max_events = 1000;
};

// How interrupted fibers of a class are recovered.
struct ClassFibers {
  // How long one recovery hook may take. It usually only begins the work again.
  std::chrono::milliseconds recovery_timeout{60'000};

  // Recoveries begun without progress until a fiber is given up and kept as dead. Ten with the waits below is a
  // quarter of an hour: long enough for an outage, short enough to be noticed.
  std::uint32_t max_attempts = 10;

  // Recoveries begun in all, with progress or without, until a fiber is given up; 0: no bound. What only looks like progress
  // ends there. A thousand crashes of one fiber are years of bad luck, and hours of a fault.
  std::uint32_t max_recoveries = 1'000;

  // The wait after the first failed recovery; it doubles each time, up to five minutes.
  std::chrono::milliseconds retry_base{1000};

  // Fibers of one agent that run at once.
  std::uint32_t max_running = 1000;

  // How long the record of a managed fiber is kept once it is completed or aborted: for callers that ask again. A day.
  std::chrono::milliseconds keep_completed{std::chrono::hours(24)};

  // And of one that has failed, and how long a dead fiber without a record is kept: for people. A week.
  std::chrono::milliseconds keep_failed{std::chrono::hours(24 * 7)};

  // Records of one agent.
  std::uint32_t max_records = 10'000;
};

// What an agent of a class may schedule for itself.
struct ClassSchedules {
  // How long one run may take until it counts as failed. As a client's call, and for the same reason.
  std::chrono::milliseconds timeout{300'000};

  // Of one agent. They are held in memory while it is awake, some 200 bytes each.
  std::uint32_t max_schedules = 10'000;

  // Runs of one agent at once; what is due past that waits.
  std::uint32_t max_running = 32;
};

// The queue of an agent of a class.
struct ClassQueue {
  // How long one delivery may take until it counts as failed; the items behind it wait.
  std::chrono::milliseconds timeout{300'000};

  // Of one agent, dead letters included. They are on disk only.
  std::uint32_t max_items = 100'000;
};

// A class file, config/classes/*.yaml, or the defaults for a class that has none.
struct ClassConfig {
  // How long without an event before an agent leaves memory. Waking costs about a millisecond, so a
  // minute is for the memory of clients that ask in bursts.
  std::chrono::milliseconds idle_timeout{60'000};

  // How long on_evict may take. 0: none, eviction is sudden; a kill is, too.
  std::chrono::milliseconds evict_grace{0};

  Durability durability = Durability::kProcess;
  ClassLimits limits;
  ClassFibers fibers;
  ClassSchedules schedules;
  ClassQueue queue;

  // How soon an agent that kept itself alive is back at the latest when it was lost though the server lives on: when its
  // storage failed. After a crash of the server it is back at once.
  std::chrono::milliseconds keep_alive_interval{30'000};

  // What the plugin is given, as it is: an object, empty when the file has no options.
  Json options = Json::object();

  // The file that this comes from, as diagnostics name it; empty for the defaults.
  std::string file;
};

using ClassConfigs = std::map<std::string, ClassConfig, std::less<>>;  // by class name

// All that the files say.
struct Config {
  ServerConfig server;
  ClassConfigs classes;
  ClassConfig defaults;  // for a class without a file

  // What holds for a class: its own file's values, or the defaults.
  [[nodiscard]] const ClassConfig& for_class(std::string_view name) const {
    const auto found = classes.find(name);
    return found == classes.end() ? defaults : found->second;
  }
};

}  // namespace hearth::config
