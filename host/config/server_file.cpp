#include "config/server_file.hpp"

#include "base/authority.hpp"
#include "config/mapping_reader.hpp"
#include "config/units.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace hearth::config {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

// The bounds keep out what cannot be meant: a zero that turns the server off, and numbers past which
// memory, descriptors or timers do not go. Between them it is the reader's own business.
constexpr Bounds<std::uint32_t> kPopulation{1, 1'000'000};
constexpr Bounds<std::size_t> kMessage{1U << 10U, 256U << 20U};
constexpr Bounds<std::size_t> kQueue{64U << 10U, 1U << 30U};
constexpr Bounds<std::size_t> kMemory{1U << 20U, std::size_t{1} << 40U};
constexpr Bounds<std::size_t> kRate{1, 1U << 20U};
constexpr Bounds<std::size_t> kName{1, 1024};  // it is part of a URL, and whole URLs are bounded
constexpr Bounds<milliseconds> kTimeout{milliseconds(10), hours(1)};
constexpr Bounds<milliseconds> kCall{milliseconds(10), hours(24)};
constexpr Bounds<milliseconds> kGrace{seconds(0), minutes(10)};
constexpr Bounds<milliseconds> kInterval{seconds(0), hours(1)};
constexpr Bounds<std::uint32_t> kTrial{0, 1'000};
constexpr Bounds<std::uint32_t> kPercent{0, 100};
constexpr Bounds<std::uint32_t> kShare{1, 100};
constexpr std::uint64_t kMaxShards = 256;

bool is_origin(std::string_view text) {
  return text == "*" || text == "null" || parse_origin(text).has_value();
}

bool is_host(std::string_view text) {
  return text == "*" || parse_authority(text).has_value();
}

void read_server_limits(const YamlNode& node, ServerLimits& limits, Report& report) {
  MappingReader reader(node, "limits.", report);
  reader.read_count("max_live_agents", limits.max_live_agents, kPopulation);
  reader.read_count("max_connections", limits.max_connections, kPopulation);
  reader.read_size("max_frame", limits.max_frame_bytes, kMessage);
  reader.read_size("max_body", limits.max_body_bytes, kMessage);
  reader.read_size("send_queue", limits.send_queue_bytes, kQueue);
  reader.read_size("client_memory", limits.client_memory_bytes, kMemory);
  reader.read_size("min_rate", limits.min_rate, kRate);
  reader.read_size("max_name", limits.max_name_bytes, kName);
  reader.read_duration("start_timeout", limits.start_timeout, kTimeout);
  reader.read_duration("call_timeout", limits.call_timeout, kCall);
  reader.read_count("max_waiting", limits.max_waiting, kPopulation);
  reader.read_count("recovery_share", limits.recovery_share, kShare);
  reader.read_duration("shutdown_grace", limits.shutdown_grace, kGrace);
  reader.read_duration("ping_interval", limits.ping_interval, kInterval);
  reader.read_duration("ping_timeout", limits.ping_timeout, kTimeout);
  reader.read_duration("handshake_timeout", limits.handshake_timeout, kTimeout);
  reader.read_duration("http_idle_timeout", limits.http_idle_timeout, kTimeout);
  reader.read_duration("soft_hang", limits.soft_hang, kInterval);
  reader.read_duration("hard_hang", limits.hard_hang, kInterval);
  reader.finish();
}

void read_reload(const YamlNode& node, ReloadConfig& reload, Report& report) {
  MappingReader reader(node, "reload.", report);
  reader.read_choice("watch", reload.watch, {{"true", true}, {"false", false}});
  reader.read_duration("quiet_time", reload.quiet_time, kTimeout);
  reader.read_choice("policy", reload.policy,
                     {{"evict", ReloadPolicy::kEvict}, {"drain", ReloadPolicy::kDrain}});
  reader.read_duration("drain_deadline", reload.drain_deadline, kCall);
  reader.read_count("trial_agents", reload.trial_agents, kTrial);
  reader.read_count("max_failed_percent", reload.max_failed_percent, kPercent);
  reader.read_duration("trial_time", reload.trial_time, kTimeout);
  reader.read_duration("probation", reload.probation, kInterval);
  reader.read_count("max_pinned", reload.max_pinned, kTrial);
  reader.read_duration("removal_grace", reload.removal_grace, kGrace);
  reader.finish();
}

void read_admin(const YamlNode& node, const std::filesystem::path& directory, AdminConfig& admin,
                Report& report) {
  MappingReader reader(node, "admin.", report);
  reader.read_path("token_file", admin.token_file, directory);
  reader.finish();
}

void read_log(const YamlNode& node, LogSettings& log, Report& report) {
  MappingReader reader(node, "log.", report);
  reader.read_choice("level", log.level,
                     {{"trace", LogLevel::kTrace},
                      {"debug", LogLevel::kDebug},
                      {"info", LogLevel::kInfo},
                      {"warn", LogLevel::kWarn},
                      {"error", LogLevel::kError}});
  reader.read_choice(
      "format", log.format,
      {{"auto", LogFormat::kAuto}, {"human", LogFormat::kHuman}, {"json", LogFormat::kJson}});
  reader.finish();
}

void read_listen(MappingReader& reader, ListenAddress& listen) {
  const YamlNode* const node = reader.find("listen");
  if (node == nullptr || node->kind == YamlNode::Kind::kRefused) return;
  if (node->kind != YamlNode::Kind::kScalar) {
    // YAML takes brackets for a list, which is how an IPv6 address without quotes gets here.
    return reader.complain("listen", node->at,
                           "expected HOST:PORT in quotes, such as \"127.0.0.1:8787\" or "
                           "\"[::1]:8787\", found " +
                               describe(*node));
  }
  auto address = parse_listen_address(node->text);
  if (!address) return reader.complain("listen", node->at, address.error().message);
  listen = *std::move(address);
}

void read_shards(MappingReader& reader, std::optional<unsigned>& shards) {
  constexpr std::string_view kForm = "auto or a whole number from 1 to 256";
  const YamlNode* const node = reader.find_scalar("shards", kForm);
  if (node == nullptr) return;
  if (node->text == "auto") {
    shards.reset();
    return;
  }
  const auto count = parse_count(node->text);
  if (node->is_quoted || !count || *count < 1 || *count > kMaxShards) {
    return reader.complain("shards", node->at,
                           "expected " + std::string(kForm) + ", found " + describe(*node));
  }
  shards = static_cast<unsigned>(*count);
}

}  // namespace

ServerFile read_server_file(const YamlNode& root, const std::filesystem::path& directory,
                            Report& report) {
  ServerFile file;
  ServerConfig& config = file.config;
  config.data = resolved_path(directory, config.data);
  for (auto& plugins : config.plugins) plugins = resolved_path(directory, plugins);
  config.classes = resolved_path(directory, config.classes);

  MappingReader reader(root, "", report);
  read_listen(reader, config.listen);
  reader.read_path("data", config.data, directory);
  reader.read_paths("plugins", config.plugins, directory);
  config.names_plugins = reader.find("plugins") != nullptr;
  reader.read_choice("require_checked", config.require_checked, {{"true", true}, {"false", false}});
  reader.read_path("classes", config.classes, directory);
  read_shards(reader, config.shards);
  reader.read_texts("allowed_origins", config.allowed_origins,
                    "origins such as [\"https://app.example\"]", is_origin);
  reader.read_texts("allowed_hosts", config.allowed_hosts, "hosts such as [\"app.example\"]",
                    is_host);
  if (const YamlNode* const limits = reader.find("limits"); limits != nullptr) {
    read_server_limits(*limits, config.limits, report);
  }
  if (const YamlNode* const reload = reader.find("reload"); reload != nullptr) {
    read_reload(*reload, config.reload, report);
  }
  if (const YamlNode* const admin = reader.find("admin"); admin != nullptr) {
    read_admin(*admin, directory, config.admin, report);
  }
  if (const YamlNode* const log = reader.find("log"); log != nullptr) {
    read_log(*log, config.log, report);
  }
  reader.finish();

  const auto classes = std::ranges::find(root.entries, "classes", &YamlEntry::key);
  if (classes != root.entries.end()) file.classes_at = classes->value.at;
  return file;
}

}  // namespace hearth::config
