#pragma once
// The configuration as values: the settings of a server and its classes, with their defaults.
//
// Each field has its unit, its default and the reason for the default. The rows of server_file.cpp
// and class_file.cpp have the field's key in files and its allowed values.

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

// The address that a server listens on. units.hpp parses and prints it.
struct ListenAddress {
  std::string host;        // IPv4, IPv6 without brackets, or a name that is not looked up yet
  std::uint16_t port = 0;  // 0: the system chooses

  bool operator==(const ListenAddress&) const = default;
};

// Limits that belong neither to the network nor to the runtime.
struct ServerLimits {
  // Bytes of an agent's name. Long enough for a URL or two UUIDs, short enough for a log line.
  std::size_t max_name = 256;

  // How long turns in progress may continue after the signal to stop. By default a service
  // manager kills after 90 s, a container runtime after 10 s.
  std::chrono::milliseconds shutdown_grace{10'000};

  // A call into a library that blocks its event loop for longer is logged; 0: never. All agents of
  // the loop wait for the call.
  std::chrono::milliseconds soft_hang{1'000};

  // After this time the server ends, so that the service manager restarts it; 0: never. Longer than
  // any correct call.
  std::chrono::milliseconds hard_hang{60'000};
};

enum class ReloadPolicy {
  kEvict,  // agents move to a new version of their code at once
  kDrain,  // each at its next idle moment
};

// What happens when a library is replaced while the server runs.
struct ReloadConfig {
  // Whether the server watches the plugin directories and the class files. Otherwise it looks only
  // at SIGHUP, or when an administrator reloads.
  bool watch = true;

  // How long a directory must be quiet before a change counts: a copy is made in several steps.
  std::chrono::milliseconds quiet_time{300};

  ReloadPolicy policy = ReloadPolicy::kEvict;

  // Under kDrain: when busy agents move too. A minute is longer than most answers take.
  std::chrono::milliseconds drain_deadline{60'000};

  // Agents that move to a new version before all others; 0: none. A bad version hurts only these,
  // and they are enough to judge it.
  std::uint32_t trial_agents = 5;

  // Percent of these agents that may fail to start. If more fail, the old version stays.
  std::uint32_t max_failed_percent = 20;

  // How long the server waits for their starts.
  std::chrono::milliseconds trial_time{30'000};

  // How long a new version must run after all agents have moved, until it is proven; 0: it is
  // proven at once. If it crashes the server before that, the version before it is served after the
  // restart. Long enough for agents to be used once.
  std::chrono::milliseconds probation{60'000};

  // Versions whose code cannot be unloaded. Once there are this many, the server does not replace a
  // library that would add one.
  std::uint32_t max_pinned = 8;

  // How long the clients of a removed library wait for it to come back.
  std::chrono::milliseconds removal_grace{10'000};
};

// Access to /admin.
struct AdminConfig {
  // The file with the token; absolute once loaded. Empty: "admin.token" in the data directory,
  // which the server makes.
  std::filesystem::path token_file;
};

// Agents that are called as objects (api/objects_endpoint.hpp).
struct ObjectsConfig {
  // The file with the token that /objects asks for; absolute once loaded. Empty: clients
  // authenticate as for agents, administrators with their own token. Classes of objects ask for it
  // at /agents as well, unless their file has another `auth.type`.
  std::filesystem::path token_file;
  // Whether each class is a class of objects, unless its class file says `objects: false`.
  bool all_classes = false;
};

// How clients of agents authenticate.
struct AuthConfig {
  AuthRules rules{.type = ProofKind::kNone, .name = {}};

  // The sources that the server checks proofs with, also proofs that only a class asks for. Paths
  // are absolute once loaded. Empty: none.
  std::filesystem::path token_file;
  std::filesystem::path keys_file;
  std::string keys_url;

  // `iss` and `aud` that a JSON Web Token must have.
  std::string issuer;
  std::vector<std::string> audiences;

  // Allowed difference between the issuer's clock and this one. Synchronised clocks differ by less
  // than a minute.
  std::chrono::milliseconds clock_skew{60'000};
};

// Requests that agents send to other servers.
struct EgressConfig {
  // Certificates of authorities that are trusted besides the system's; absolute once loaded. Empty:
  // none.
  std::filesystem::path ca_file;
  // Requests in progress on one shard, of all classes. No setting: the server lowers it if the
  // limit of open files is low.
  std::size_t max_requests = 2000;
};

// The audit log (server/audit_log.hpp).
struct AuditConfig {
  // Entries of each kind that are kept; 0: none. A hundred thousand entries are some tens of
  // megabytes.
  std::uint32_t max_entries = 100'000;

  // How long an entry is kept: a quarter of a year.
  std::chrono::milliseconds keep = std::chrono::hours(24 * 90);

  // A file to which each entry is appended as well; absolute once loaded. Empty: none.
  std::filesystem::path file = {};
};

// The collector of traces (server/span_exporter.hpp).
struct TracingConfig {
  std::string endpoint;  // a URL; empty: no span is recorded
  // Files with one header each, which is a secret; absolute once loaded.
  std::vector<std::filesystem::path> headers;
  // Of the traces that begin here. All of them, until the operator knows how many there are.
  double sample = 1;
  std::string service_name = "hearth";
};

struct LogSettings {
  LogLevel level = LogLevel::kInfo;
  LogFormat format = LogFormat::kAuto;  // kAuto: human on a terminal, JSON otherwise
};

// Names of credentials, and their files.
using Secrets = std::map<std::string, std::filesystem::path>;

// What the server file says for every class file.
struct ForClasses {
  bool all_are_objects = false;   // ObjectsConfig::all_classes
  bool objects_have_key = false;  // ObjectsConfig::token_file is set
  Secrets secrets = {};           // the only ones that definitions over HTTP may use
};

// The server file, config/hearth.yaml.
struct ServerConfig {
  net::NetOptions net{.port = 8787};  // on this machine only, until its operator says otherwise
  runtime::RuntimeLimits runtime;
  std::filesystem::path data = "data";                       // absolute once loaded
  std::vector<std::filesystem::path> plugins = {"plugins"};  // directories; absolute once loaded
  // Whether a library is refused until it has passed `hearth check --data <data>`. Off: the server
  // trusts the users that can write the plugin directories.
  bool require_checked = false;
  std::filesystem::path classes = "classes";  // directory of class files; absolute once loaded
  std::optional<unsigned> shards;             // event loops; absent: one for each core
  // Pages that may use the server besides its own, as "https://app.example", "null" or "*". And
  // names that clients may use for the server, as "app.example" with or without a port, or "*".
  // api/origin_rules.hpp has the rules without them.
  std::vector<std::string> allowed_origins;
  std::vector<std::string> allowed_hosts;
  std::vector<RouteRule> routes;  // besides /agents/...
  AuthConfig auth;
  CorsRules cors;
  ServerLimits limits;
  ReloadConfig reload;
  AdminConfig admin;
  ObjectsConfig objects;
  EgressConfig egress;
  Secrets secrets;  // absolute once loaded
  AuditConfig audit;
  TracingConfig tracing;
  LogSettings log;
  Sources sources;

  [[nodiscard]] ForClasses for_classes() const {
    return {.all_are_objects = objects.all_classes,
            .objects_have_key = !objects.token_file.empty(),
            .secrets = secrets};
  }
};

// A class file, config/classes/*.yaml, or the defaults for a class that has none.
struct ClassConfig {
  runtime::ClassSettings settings;

  // The file that the settings come from, as diagnostics name it; empty for the defaults.
  std::string file;

  Sources sources;
};

using ClassConfigs = std::map<std::string, ClassConfig, std::less<>>;  // by class name

// The settings of all files. A class without a file has the values of a ClassConfig{}.
struct Config {
  ServerConfig server;
  ClassConfigs classes;
};

}  // namespace hearth::config
