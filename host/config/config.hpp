#pragma once
// The configuration as values: what a server and its classes may be told, and the defaults.
//
// Each field says its unit, its default and why that one. The rows of server_file.cpp and
// class_file.cpp say what files call it and which values they may give it.

#include "base/client_rules.hpp"
#include "config/source.hpp"
#include "net/options.hpp"
#include "runtime/class_settings.hpp"
#include "telemetry/stderr_logger.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace hearth::config {

// An agent's handle has eight bits for its shard.
inline constexpr unsigned kMaxShards = 256;

// Where a server answers. units.hpp parses and prints it.
struct ListenAddress {
  std::string host;        // IPv4, IPv6 without brackets, or a name; no name is looked up yet
  std::uint16_t port = 0;  // 0: the system chooses

  bool operator==(const ListenAddress&) const = default;
};

// Bounds that neither the network nor the runtime keeps.
struct ServerLimits {
  // Bytes of an agent's name. Long enough for a URL or two UUIDs, short enough for a log line.
  std::size_t max_name = 256;

  // How long turns in progress may go on once the server is told to stop. A service manager kills
  // after 90 s by default, a container runtime after 10 s: this is for what comes before the kill.
  std::chrono::milliseconds shutdown_grace{10'000};

  // How long one call into a library may keep its event loop until it is logged; 0: it is not.
  // Others' agents wait meanwhile.
  std::chrono::milliseconds soft_hang{1'000};

  // How long until the server ends, so that the service manager starts it again; 0: never. Longer
  // than any honest call.
  std::chrono::milliseconds hard_hang{60'000};
};

enum class ReloadPolicy {
  kEvict,  // agents move to a new version of their code at once
  kDrain,  // each at its next idle moment
};

// What happens when a library is replaced while the server runs.
struct ReloadConfig {
  // Whether the plugin directories and the class files are watched; else the server looks only when
  // it is told to.
  bool watch = true;

  // How long all must have been quiet in a directory before a change counts: copying takes steps.
  std::chrono::milliseconds quiet_time{300};

  ReloadPolicy policy = ReloadPolicy::kEvict;

  // Under kDrain: when the agents that were never idle move all the same. A minute is longer than
  // most answers take.
  std::chrono::milliseconds drain_deadline{60'000};

  // Agents that move to a new version before all others do; 0: none. Few enough to hurt few, enough
  // to tell.
  std::uint32_t trial_agents = 5;

  // Percent of them that may fail to start on it; if more do, the old version goes on.
  std::uint32_t max_failed_percent = 20;

  // How long their starts are waited for.
  std::chrono::milliseconds trial_time{30'000};

  // How long a version that has taken the place of another one must run after that until it counts
  // as proven; 0: not at all. If it ends the server before, the one before it is served after the
  // restart. Long enough for agents to be used once.
  std::chrono::milliseconds probation{60'000};

  // Versions whose code should have gone and cannot be unloaded: when there are so many, a library
  // that would add to them is not replaced.
  std::uint32_t max_pinned = 8;

  // How long the clients of a library that was removed wait for it to come back.
  std::chrono::milliseconds removal_grace{10'000};
};

// Who may ask for /admin.
struct AdminConfig {
  // The file with the token; absolute once loaded. Empty: "admin.token" in the data directory,
  // which the server makes.
  std::filesystem::path token_file;
};

// Of agents that are called as objects (api/objects_endpoint.hpp).
struct ObjectsConfig {
  // The file with the token that /objects asks for; absolute once loaded. Empty: clients are let in
  // as to agents, and administrators by their own token.
  std::filesystem::path token_file;
  // Whether each class is one of objects unless its class file says `objects: false`.
  bool all_classes = false;
};

// Who may be a client of agents.
struct AuthConfig {
  AuthRules rules{.type = ProofKind::kNone, .name = {}};

  // What proofs are checked with, also those that only a class asks for. Absolute once loaded, or a
  // URL; empty: none.
  std::filesystem::path token_file;
  std::filesystem::path keys_file;
  std::string keys_url;

  // What a JSON Web Token must say.
  std::string issuer;
  std::vector<std::string> audiences;

  // Between the issuer's clock and ours. A minute: clocks that are kept right never differ by it.
  std::chrono::milliseconds clock_skew{60'000};
};

// Of requests that agents send to other servers.
struct EgressConfig {
  // Certificates of authorities that are trusted beside the system's; absolute once loaded. Empty:
  // none.
  std::filesystem::path ca_file;
  // Requests in progress on one shard, of all classes. No setting: the server lowers it if the
  // limit of open files asks for it.
  std::size_t max_requests = 2000;
};

// The record of what was done (server/audit_log.hpp).
struct AuditConfig {
  // Entries that are kept; 0: none. A hundred thousand are some tens of megabytes.
  std::uint32_t max_entries = 100'000;

  // How long one is kept: a quarter of a year.
  std::chrono::milliseconds keep = std::chrono::hours(24 * 90);

  // A file to which each entry is appended as well; absolute once loaded. Empty: none.
  std::filesystem::path file = {};
};

struct LogSettings {
  LogLevel level = LogLevel::kInfo;
  LogFormat format = LogFormat::kAuto;  // kAuto: for people on a terminal, JSON otherwise
};

// The server file, config/hearth.yaml.
struct ServerConfig {
  net::NetOptions net{.port = 8787};  // on this machine only, until its operator says otherwise
  runtime::RuntimeLimits runtime;
  std::filesystem::path data = "data";                       // absolute once loaded
  std::vector<std::filesystem::path> plugins = {"plugins"};  // directories; absolute once loaded
  // Whether a library is refused until it has passed `hearth check --data <data>`. Off: whoever may
  // write the plugin directories is trusted to have done so.
  bool require_checked = false;
  std::filesystem::path classes = "classes";  // directory of class files; absolute once loaded
  std::optional<unsigned> shards;             // event loops; absent: one a core
  // Pages that may use the server beside its own, as "https://app.example", "null" or "*"; and
  // names that it may be asked by, as "app.example" with or without a port, or "*".
  // api/origin_rules.hpp says what holds without them.
  std::vector<std::string> allowed_origins;
  std::vector<std::string> allowed_hosts;
  std::vector<RouteRule> routes;  // beside /agents/...
  AuthConfig auth;
  CorsRules cors;
  ServerLimits limits;
  ReloadConfig reload;
  AdminConfig admin;
  ObjectsConfig objects;
  EgressConfig egress;
  AuditConfig audit;
  LogSettings log;
  Sources sources;
};

// A class file, config/classes/*.yaml, or the defaults for a class that has none.
struct ClassConfig {
  runtime::ClassSettings settings;

  // The file that this comes from, as diagnostics name it; empty for the defaults.
  std::string file;

  Sources sources;
};

using ClassConfigs = std::map<std::string, ClassConfig, std::less<>>;  // by class name

// All that the files say. A class without a file has the values of a ClassConfig{}.
struct Config {
  ServerConfig server;
  ClassConfigs classes;
};

}  // namespace hearth::config
