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

  // Bytes that wait for one client that reads slowly; past it the client is disconnected.
  std::size_t send_queue_bytes = 4U << 20U;

  // Bytes of an agent's name. Long enough for a URL or two UUIDs, short enough for a log line.
  std::size_t max_name_bytes = 256;

  // How long waking an agent may take, its own on_start included.
  std::chrono::milliseconds start_timeout{10'000};

  // How long one event may be in progress before its caller gets a time-out. Minutes, because
  // agents wait for language models and for people's servers.
  std::chrono::milliseconds call_timeout{300'000};

  // Events that wait for one agent to start; past it they are refused.
  std::uint32_t max_waiting = 1000;

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
  std::filesystem::path classes = "classes";  // directory of class files; absolute once loaded
  std::optional<unsigned> shards;             // event loops; absent: one a core
  ServerLimits limits;
  LogSettings log;
};

enum class Durability {
  kProcess,  // an acknowledged write survives the death of the process
  kPower,    // it survives the loss of power; no file may ask for it yet
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

  // The wait after the first failed recovery; it doubles each time, up to five minutes.
  std::chrono::milliseconds retry_base{1000};

  // Fibers of one agent that run at once.
  std::uint32_t max_running = 1000;
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

  // What the plugin is given, as it is: an object, empty when the file has no options.
  Json options = Json::object();

  // The file that this comes from, as diagnostics name it; empty for the defaults.
  std::string file;
};

// All that the files say.
struct Config {
  ServerConfig server;
  std::map<std::string, ClassConfig, std::less<>> classes;  // by class name
  ClassConfig defaults;                                     // for a class without a file

  // What holds for a class: its own file's values, or the defaults.
  [[nodiscard]] const ClassConfig& for_class(std::string_view name) const {
    const auto found = classes.find(name);
    return found == classes.end() ? defaults : found->second;
  }
};

}  // namespace hearth::config
