#include "config/server_file.hpp"

#include "base/authority.hpp"
#include "base/escape.hpp"
#include "base/ip_network.hpp"
#include "config/edge_section.hpp"
#include "config/egress_section.hpp"
#include "config/tracing_section.hpp"
#include "config/units.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

namespace hearth::config {
namespace {

using net::AddressLimits;
using net::NetOptions;
using net::TlsOptions;
using net::TotalLimits;
using runtime::RuntimeLimits;
using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

// The bounds refuse values that cannot be meant: a zero that turns the server off, and numbers that
// memory, descriptors or timers cannot reach.
constexpr Bounds<std::uint32_t> kPopulation{1, 1'000'000};
constexpr Bounds<std::uint32_t> kTrial{0, 1'000};
constexpr Bounds<std::uint32_t> kPerAddress{0, 1'000'000};
constexpr Bounds<std::uint32_t> kInTotal{0, 100'000'000};
constexpr Bounds<std::size_t> kMessage{1U << 10U, 256U << 20U};
constexpr Bounds<milliseconds> kTimeout{milliseconds(10), hours(1)};
constexpr Bounds<milliseconds> kCall{milliseconds(10), hours(24)};
constexpr Bounds<milliseconds> kGrace{seconds(0), minutes(10)};
constexpr Bounds<milliseconds> kInterval{seconds(0), hours(1)};
constexpr Bounds<milliseconds> kKept{hours(1), hours(24 * 3660)};
constexpr Bounds<std::uint32_t> kEntries{0, 10'000'000};

bool is_origin(std::string_view text) {
  return text == "*" || text == "null" || parse_origin(text).has_value();
}

bool is_host(std::string_view text) {
  return text == "*" || parse_authority(text).has_value();
}

void read_listen(const Reading& in, NetOptions& out) {
  const YamlNode* const node = in.reader.find(in.key);
  if (node == nullptr || node->kind == YamlNode::Kind::kRefused) return;
  if (node->kind != YamlNode::Kind::kScalar) {
    // YAML reads an IPv6 address in brackets without quotes as a list.
    return in.reader.complain(in.key, node->at,
                              "expected HOST:PORT in quotes, such as \"127.0.0.1:8787\" or "
                              "\"[::1]:8787\", found " +
                                  describe(*node));
  }
  auto address = parse_listen_address(node->text);
  if (!address) return in.reader.complain(in.key, node->at, address.error().message);
  out.host = std::move(address->host);
  out.port = address->port;
}

Setting<ServerConfig> listen_setting() {
  return row(
      "listen", "`HOST:PORT`", "", at(&ServerConfig::net), read_listen,
      [](const NetOptions& net) { return to_string(ListenAddress{net.host, net.port}); },
      "where clients connect; IPv6 in brackets (`\"[::1]:8787\"`); port 0: the system chooses");
}

Setting<ServerConfig> plugins_setting() {
  using Paths = std::vector<std::filesystem::path>;
  auto setting = row(
      "plugins", "list of paths", "", at(&ServerConfig::plugins),
      [](const Reading& in, Paths& out) { in.reader.read_paths(in.key, out, in.directory); },
      [](const Paths& paths) {
        Json list = Json::array();
        for (const auto& each : paths) list.push_back(each.string());
        return list;
      },
      "directories of plugin libraries; directories that are named here are never "
      "replaced by the installed libraries");
  setting.default_words =
      "`[\"plugins\"]`; if there is no such directory, the libraries that were installed with "
      "`hearth`";
  return setting;
}

void read_shards(const Reading& in, std::optional<unsigned>& shards) {
  constexpr std::string_view kForm = "auto or a whole number from 1 to 256";
  const YamlNode* const node = in.reader.find_scalar(in.key, kForm);
  if (node == nullptr) return;
  if (node->text == "auto") {
    shards.reset();
    return;
  }
  const auto count = parse_count(node->text);
  if (node->is_quoted || !count || *count < 1 || *count > kMaxShards) {
    return in.reader.complain(in.key, node->at,
                              "expected " + std::string(kForm) + ", found " + describe(*node));
  }
  shards = static_cast<unsigned>(*count);
}

Setting<ServerConfig> shards_setting() {
  return row(
      "shards", "`auto`, count", "1, " + std::to_string(kMaxShards), at(&ServerConfig::shards),
      read_shards,
      [](const std::optional<unsigned>& shards) { return shards ? Json(*shards) : Json("auto"); },
      "event loops; `auto`: one for each core");
}

// A member of a part of `net`.
template <class Part, class T>
Fields<ServerConfig, T> at_net(Part NetOptions::* part, T Part::* member) {
  return {{.get = [=](const ServerConfig& server) -> const T& { return server.net.*part.*member; },
           .of = [=](ServerConfig& server) -> T& { return server.net.*part.*member; }}};
}

template <class T>
Fields<ServerConfig, T> at_tls(T TlsOptions::* member) {
  return at_net(&NetOptions::tls, member);
}

template <class T>
Fields<ServerConfig, T> at_address(T AddressLimits::* member) {
  return at_net(&NetOptions::per_address, member);
}

template <class T>
Fields<ServerConfig, T> at_total(T TotalLimits::* member) {
  return at_net(&NetOptions::in_total, member);
}

bool is_network(std::string_view text) {
  return parse_ip_network(text).has_value();
}

Setting<ServerConfig> certificate_setting() {
  auto setting = path("tls.certificate", at_tls(&TlsOptions::certificate),
                      "[TLS](#tls): PEM file with the server's certificate, followed by the "
                      "intermediate certificates");
  setting.default_words = "none: the server speaks plain HTTP";
  return setting;
}

Setting<ServerConfig> key_setting() {
  auto setting =
      path("tls.key", at_tls(&TlsOptions::key),
           "PEM file with the certificate's private key, not encrypted, for the server's "
           "user alone (0600; 0640 for a group)");
  setting.default_words = "none";
  return setting;
}

// One of the two files alone is a mistake.
void check_tls(const ServerConfig& config, Report& report) {
  const bool has_certificate = config.sources.contains("tls.certificate");
  if (has_certificate == config.sources.contains("tls.key")) return;
  const std::string_view given = has_certificate ? "tls.certificate" : "tls.key";
  const std::string_view missing = has_certificate ? "tls.key" : "tls.certificate";
  report.add(config.sources.find(given)->second.at,
             std::string(given) + ": it needs " + std::string(missing) + " beside it");
}

Setting<ServerConfig> token_file_setting() {
  auto setting =
      path("admin.token_file", at(&ServerConfig::admin, &AdminConfig::token_file),
           "the token of [administrators](../packaging/README.md#administration): one "
           "line of 16 to 512 printable characters without a space. A file that is named "
           "here must exist: without it `--check-config` fails and the server does not "
           "start");
  setting.default_words = "`admin.token` in `data`, made by the server";
  return setting;
}

Setting<ServerConfig> objects_token_setting() {
  auto setting = path(
      "objects.token_file", at(&ServerConfig::objects, &ObjectsConfig::token_file),
      "a token in a file like `admin.token_file`. Each request below `/objects` must "
      "then carry it, or the administrators' token, [as its key](#the-key-of-objects). Classes "
      "of objects ask for it at `/agents` too, unless they have an `auth.type`");
  setting.default_words = "none";
  return setting;
}

Settings<ServerConfig> make_own_server_settings() {
  using Server = ServerConfig;
  return {
      listen_setting(),
      certificate_setting(),
      key_setting(),
      word("tls.min_version", at_tls(&TlsOptions::min_version),
           {{"1.2", net::TlsVersion::k12}, {"1.3", net::TlsVersion::k13}},
           "the oldest version of TLS that the server accepts"),
      path("data", at(&Server::data),
           "directory of the agents' databases; one server at a time uses it"),
      plugins_setting(),
      yes_or_no("require_checked", at(&Server::require_checked),
                "whether the server refuses a library (rule K1) until `hearth check --data DIR "
                "LIB.so` has passed it, with `data` as `DIR`; `<data>/checked` records by "
                "content which libraries have passed"),
      path("classes", at(&Server::classes),
           "directory of class files; must exist if it is named here"),
      shards_setting(),
      word("compression", at(&Server::net, &NetOptions::compression),
           {{"none", net::Compression::kNone},
            {"no_context_takeover", net::Compression::kNoContextTakeover},
            {"context_takeover", net::Compression::kContextTakeover}},
           "[compression](#compression) of WebSocket messages for clients that offer it"),
      texts("allowed_origins", at(&Server::allowed_origins),
            "origins such as [\"https://app.example\"]", is_origin,
            "[pages](#pages-and-names) that may use the server, besides its own: "
            "`\"https://app.example\"`, `\"null\"`, `\"*\"`"),
      texts("allowed_hosts", at(&Server::allowed_hosts), "hosts such as [\"app.example\"]", is_host,
            "[names](#pages-and-names) that clients may use for the server: "
            "`\"app.example\"`, with or without a port, `\"*\"`"),
      server_secrets_setting(),
      count("limits.max_live_agents", at(&Server::runtime, &RuntimeLimits::max_live_agents),
            kPopulation,
            "agents in memory at once; fewer if the [limit of open files](#open-files) is "
            "lower"),
      count("limits.max_active_objects", at(&Server::runtime, &RuntimeLimits::max_active_objects),
            kPopulation,
            "[objects](#objects) in memory at once, of the whole server, also those with "
            "WebSockets. When there is no room for another one, the least recently used "
            "idle object hibernates; if all are busy, the new object's caller gets 503"),
      count("limits.max_connections", at(&Server::net, &NetOptions::max_connections), kPopulation,
            "open sockets; fewer if the [limit of open files](#open-files) is lower"),
      size("limits.max_frame", at(&Server::net, &NetOptions::max_frame), kMessage,
           "one WebSocket message from a client"),
      size("limits.max_body", at(&Server::net, &NetOptions::max_body), kMessage,
           "one HTTP request's body"),
      size("limits.send_queue", at(&Server::net, &NetOptions::send_queue), {64U << 10U, 1U << 30U},
           "what waits for one slow client, before the server disconnects it; from half "
           "of it on the server does not read from the client"),
      size("limits.client_memory", at(&Server::runtime, &RuntimeLimits::client_memory),
           {1U << 20U, std::size_t{1} << 40U},
           "memory for all clients together: unfinished requests and messages, what waits "
           "for agents or for the disk, what clients have not read yet. When it is full, "
           "a client that needs more than 8 KiB gets 503 or 1013; what is in progress "
           "continues"),
      size("limits.min_rate", at(&Server::net, &NetOptions::min_rate), {1, 1U << 20U},
           "a second, over each 10 s: the server disconnects (408, 1013) a client that "
           "sends less of an unfinished body or message, or reads less of what waits for "
           "it"),
      size("limits.max_name", at(&Server::limits, &ServerLimits::max_name), {1, 1024},
           "bytes of an agent's name"),
      duration("limits.start_timeout", at(&Server::runtime, &RuntimeLimits::start_timeout),
               kTimeout, "how long an agent may take to wake"),
      duration("limits.call_timeout", at(&Server::runtime, &RuntimeLimits::call_timeout), kCall,
               "how long one event may take, before its caller gets a timeout"),
      count("limits.max_waiting", at(&Server::runtime, &RuntimeLimits::max_waiting), kPopulation,
            "events that wait for one agent to wake, or to come back with new code. "
            "Further calls and requests get `too many requests wait for this agent` (503); "
            "the server does not read from a client with many waiting frames"),
      count(
          "limits.recovery_share", at(&Server::runtime, &RuntimeLimits::recovery_share), {1, 100},
          "at most this percent of an event loop's time for the recovery of interrupted work while "
          "clients use the loop; otherwise recovery may use all of it"),
      duration("limits.shutdown_grace", at(&Server::limits, &ServerLimits::shutdown_grace), kGrace,
               "how long running work may continue, once the server is told to stop"),
      duration("limits.ping_interval", at(&Server::net, &NetOptions::ping_interval), kInterval,
               "between two pings to a client; `0s`: no pings"),
      duration("limits.ping_timeout", at(&Server::net, &NetOptions::ping_timeout), kTimeout,
               "how long a client may take to answer a ping"),
      duration("limits.handshake_timeout", at(&Server::net, &NetOptions::handshake_timeout),
               kTimeout, "from a connection to the end of its first request's head"),
      duration("limits.http_idle_timeout", at(&Server::net, &NetOptions::http_idle_timeout),
               kTimeout, "between two requests on one connection"),
      duration("limits.soft_hang", at(&Server::limits, &ServerLimits::soft_hang), kInterval,
               "a call into a library that takes longer is logged (`agent.call_slow`); `0s`: "
               "never. Jobs on threads of their own may take longer"),
      duration("limits.hard_hang", at(&Server::limits, &ServerLimits::hard_hang), kInterval,
               "when a call into a library takes longer, the server ends with status 3, its "
               "supervisor restarts it, and the class is in quarantine; `0s`: never"),
      count("address_limits.connections", at_address(&AddressLimits::connections), kPerAddress,
            "open connections of [one address](#limits-of-an-address); `0` here and below: "
            "no limit"),
      count("address_limits.new_connections", at_address(&AddressLimits::new_connections),
            kPerAddress, "new connections a second"),
      count(
          "address_limits.messages", at_address(&AddressLimits::messages), kPerAddress,
          "WebSocket frames (a message has one or more, a ping is one) and HTTP requests a second"),
      size("address_limits.bytes", at_address(&AddressLimits::bytes), {0, std::size_t{1} << 40U},
           "bytes that the server reads, a second"),
      count("address_limits.new_agents", at_address(&AddressLimits::new_agents), kPerAddress,
            "new agents a minute"),
      texts("address_limits.exempt", at_address(&AddressLimits::exempt),
            "addresses and networks such as [\"10.0.0.5\", \"fd00::/8\"]", is_network,
            "addresses and networks without these limits: this machine, and proxies"),
      count("total_limits.new_connections", at_total(&TotalLimits::new_connections), kPerAddress,
            "new connections a second, [of all clients](#limits-of-an-address) that are "
            "not exempt; `0` here and below: no limit"),
      count(
          "total_limits.messages", at_total(&TotalLimits::messages), kInTotal,
          "WebSocket frames (a message has one or more, a ping is one) and HTTP requests a second"),
      size("total_limits.bytes", at_total(&TotalLimits::bytes), {0, std::size_t{1} << 40U},
           "bytes that the server reads, a second"),
      count("total_limits.new_agents", at_total(&TotalLimits::new_agents), kPerAddress,
            "new agents a minute"),
      yes_or_no("reload.watch", at(&Server::reload, &ReloadConfig::watch),
                "whether the server watches the plugin directories and the class files; "
                "otherwise it looks only [when it is told "
                "to](#changing-it-while-the-server-runs)"),
      duration("reload.quiet_time", at(&Server::reload, &ReloadConfig::quiet_time), kTimeout,
               "how long a directory must be quiet before a change counts"),
      word("reload.policy", at(&Server::reload, &ReloadConfig::policy),
           {{"evict", ReloadPolicy::kEvict}, {"drain", ReloadPolicy::kDrain}},
           "`evict`: agents move to the new code or settings at once; `drain`: each at "
           "its next idle moment, also the agents that try the new code"),
      duration("reload.drain_deadline", at(&Server::reload, &ReloadConfig::drain_deadline), kCall,
               "with `drain`: when busy agents move too. For the agents that try the new code "
               "it counts from the beginning, for the others from the end of the trial"),
      count("reload.trial_agents", at(&Server::reload, &ReloadConfig::trial_agents), kTrial,
            "live agents that try the new code before the others move. If fewer live, the "
            "first agents that wake within `reload.probation` try it too"),
      count("reload.max_failed_percent", at(&Server::reload, &ReloadConfig::max_failed_percent),
            {0, 100},
            "percent of these agents that may fail to start; if more fail, the old code "
            "stays"),
      duration("reload.trial_time", at(&Server::reload, &ReloadConfig::trial_time), kTimeout,
               "how long the server waits for their starts"),
      duration("reload.probation", at(&Server::reload, &ReloadConfig::probation), kInterval,
               "how long a new version must run after all agents moved to it, until it is "
               "proven. If it crashes the server before, or is taken back, the server serves "
               "the version before it, also after a restart, until the file changes or an "
               "administrator asks for a reload. A version with a newer schema is proven once "
               "`reload.trial_agents` have started on it: the version before cannot read "
               "their data. After a restart, or if the file was gone in between, each "
               "`schema_version` counts as newer"),
      count("reload.max_pinned", at(&Server::reload, &ReloadConfig::max_pinned), kTrial,
            "old versions that cannot be unloaded (`plugin.pinned`, "
            "`hearth_pinned_generations`). Once there are this many, the server does not "
            "replace a library that would add one (rule R3): the old version stays. A "
            "restart frees them"),
      duration("reload.removal_grace", at(&Server::reload, &ReloadConfig::removal_grace), kGrace,
               "how long the clients of a removed library wait for it to come back"),
      token_file_setting(),
      objects_token_setting(),
      yes_or_no("objects.all_classes", at(&ServerConfig::objects, &ObjectsConfig::all_classes),
                "whether each class is one of [objects](#objects), unless its class file says "
                "`objects: false`. Then `limits.max_active_objects` bounds all agents, too, "
                "besides `limits.max_live_agents`"),
      path("egress.ca_file", at(&Server::egress, &EgressConfig::ca_file),
           "PEM file with certificates of authorities that [requests of "
           "agents](#requests-to-other-servers) trust, besides the system's"),
      count("audit.max_entries", at(&Server::audit, &AuditConfig::max_entries), kEntries,
            "entries of the [audit log](../packaging/README.md#the-audit-log) that the "
            "server keeps of each kind (administrators, the server, clients and agents); "
            "`0`: none"),
      duration("audit.keep", at(&Server::audit, &AuditConfig::keep), kKept,
               "how long the server keeps an entry"),
      path("audit.file", at(&Server::audit, &AuditConfig::file),
           "a file to which the server appends each entry too, as a line of JSON"),
      word("log.level", at(&Server::log, &LogSettings::level), log_levels(),
           "the lowest level that is logged"),
      word("log.format", at(&Server::log, &LogSettings::format), log_formats(),
           "`auto`: human on a terminal, JSON otherwise"),
  };
}

// The rows of edge_section stand after `secrets`: settings without a section come before all
// sections.
Settings<ServerConfig> make_server_settings() {
  Settings<ServerConfig> settings = make_own_server_settings();
  const auto last = std::ranges::find(settings, "secrets", &Setting<ServerConfig>::path);
  Settings<ServerConfig> edge = server_edge_section();
  settings.insert(std::next(last), std::make_move_iterator(edge.begin()),
                  std::make_move_iterator(edge.end()));
  const auto log = std::ranges::find(settings, "log.level", &Setting<ServerConfig>::path);
  Settings<ServerConfig> tracing = tracing_section();
  settings.insert(log, std::make_move_iterator(tracing.begin()),
                  std::make_move_iterator(tracing.end()));
  return settings;
}

}  // namespace

const Settings<ServerConfig>& server_settings() {
  static const Settings<ServerConfig> table = make_server_settings();
  return table;
}

std::string server_reference() {
  return std::string(kReferenceHead) + reference(server_settings());
}

std::string doubts(const ServerConfig& server) {
  std::string text;
  if (server.objects.all_classes && !server.sources.contains("limits.max_active_objects"))
    text = "objects.all_classes makes all agents objects, and " +
           std::to_string(server.runtime.max_active_objects) +
           " objects may be in memory at once: set limits.max_active_objects";
  const bool asks_nobody = server.auth.rules.type.value_or(ProofKind::kNone) == ProofKind::kNone;
  if (asks_nobody && !server.net.tls.is_used() && !is_loopback_host(server.net.host))
    text += std::string(text.empty() ? "" : "; ") +
            "listen opens agents to the network, and auth.type lets every client in, without TLS: "
            "set auth and tls, or listen on this machine behind a proxy";
  for (const RouteRule& route : server.routes) {
    if (route.path != "/agents" && !route.path.starts_with("/agents/")) continue;
    text += std::string(text.empty() ? "" : "; ") + "routes has " + quote_text(route.path) +
            ", and paths below /agents come before all rows: the row has no effect. Use auth to "
            "keep clients from agents";
  }
  return text;
}

std::size_t shard_count(const ServerConfig& server) {
  const unsigned wanted = server.shards.value_or(std::thread::hardware_concurrency());
  return std::clamp(wanted, 1U, kMaxShards);
}

const Words<LogLevel>& log_levels() {
  static const Words<LogLevel> words{{"trace", LogLevel::kTrace},
                                     {"debug", LogLevel::kDebug},
                                     {"info", LogLevel::kInfo},
                                     {"warn", LogLevel::kWarn},
                                     {"error", LogLevel::kError}};
  return words;
}

const Words<LogFormat>& log_formats() {
  static const Words<LogFormat> words{
      {"auto", LogFormat::kAuto}, {"human", LogFormat::kHuman}, {"json", LogFormat::kJson}};
  return words;
}

ServerConfig read_server_file(const YamlNode& root, const std::filesystem::path& directory,
                              Report& report) {
  ServerConfig config;
  config.data = resolved_path(directory, config.data);
  for (auto& plugins : config.plugins) plugins = resolved_path(directory, plugins);
  config.classes = resolved_path(directory, config.classes);
  MappingReader reader(root, "", report);
  read_settings(server_settings(), reader, directory, report, config, config.sources);
  reader.finish();
  check_tls(config, report);
  check_auth(config, report);
  return config;
}

}  // namespace hearth::config
