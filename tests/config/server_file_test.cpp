#include "config/server_file.hpp"

#include "config/config_files.hpp"
#include "config/key_rows.hpp"

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hearth::config {
namespace {

using namespace std::chrono_literals;

using net::NetOptions;

class ServerFileTest : public ConfigFilesTest {};

// A member of a part of `net`.
template <class Part, class T>
Fields<ServerConfig, T> at_net(Part NetOptions::* part, T Part::* member) {
  return {{.get = [=](const ServerConfig& server) -> const T& { return server.net.*part.*member; },
           .of = [=](ServerConfig& server) -> T& { return server.net.*part.*member; }}};
}

std::vector<KeyRow<ServerConfig>> server_keys(const std::filesystem::path& directory) {
  using Strings = std::vector<std::string>;
  const auto net = [](auto member) { return at(&ServerConfig::net, member); };
  const auto runtime = [](auto member) { return at(&ServerConfig::runtime, member); };
  const auto limits = [](auto member) { return at(&ServerConfig::limits, member); };
  const auto reload = [](auto member) { return at(&ServerConfig::reload, member); };
  const auto address = [](auto member) { return at_net(&NetOptions::per_address, member); };
  const auto total = [](auto member) { return at_net(&NetOptions::in_total, member); };
  const auto tracing = [](auto member) { return at(&ServerConfig::tracing, member); };
  using Address = net::AddressLimits;
  using Total = net::TotalLimits;
  using Runtime = runtime::RuntimeLimits;
  using Limits = ServerLimits;
  using Reload = ReloadConfig;
  const Address each;
  const Total all;
  return {
      key("require_checked", "true", at(&ServerConfig::require_checked), true, false),
      key("shards", "3", at(&ServerConfig::shards), 3, std::nullopt),
      key("compression", "context_takeover", net(&NetOptions::compression),
          net::Compression::kContextTakeover, net::Compression::kNone),
      key("allowed_origins", R"(["https://app.example", "null"])",
          at(&ServerConfig::allowed_origins), Strings{"https://app.example", "null"}, Strings{}),
      key("allowed_hosts", R"(["app.example:8443", "*"])", at(&ServerConfig::allowed_hosts),
          Strings{"app.example:8443", "*"}, Strings{}),
      key("limits.max_live_agents", "1", runtime(&Runtime::max_live_agents), 1, 10'000),
      key("limits.max_active_objects", "3", runtime(&Runtime::max_active_objects), 3, 200),
      key("limits.max_connections", "2", net(&NetOptions::max_connections), 2, 10'000),
      key("limits.max_frame", "3KiB", net(&NetOptions::max_frame), 3072, 4 << 20),
      key("limits.max_body", "4KiB", net(&NetOptions::max_body), 4096, 4 << 20),
      key("limits.send_queue", "65KiB", net(&NetOptions::send_queue), 66'560, 4 << 20),
      key("limits.client_memory", "66MiB", runtime(&Runtime::client_memory), 66 << 20,
          Runtime().client_memory),
      key("limits.min_rate", "67", net(&NetOptions::min_rate), 67, NetOptions().min_rate),
      key("limits.max_name", "6", limits(&Limits::max_name), 6, 256),
      key("limits.start_timeout", "70ms", runtime(&Runtime::start_timeout), 70ms, 10s),
      key("limits.call_timeout", "8s", runtime(&Runtime::call_timeout), 8s, 5min),
      key("limits.max_waiting", "9", runtime(&Runtime::max_waiting), 9, 1000),
      key("limits.recovery_share", "11", runtime(&Runtime::recovery_share), 11, 40),
      key("limits.shutdown_grace", "10m", limits(&Limits::shutdown_grace), 10min, 10s),
      key("limits.ping_interval", "11s", net(&NetOptions::ping_interval), 11s, 30s),
      key("limits.ping_timeout", "12s", net(&NetOptions::ping_timeout), 12s, 10s),
      key("limits.handshake_timeout", "13s", net(&NetOptions::handshake_timeout), 13s, 10s),
      key("limits.http_idle_timeout", "1h", net(&NetOptions::http_idle_timeout), 1h, 60s),
      key("limits.soft_hang", "15ms", limits(&Limits::soft_hang), 15ms, 1s),
      key("limits.hard_hang", "16s", limits(&Limits::hard_hang), 16s, 60s),
      key("address_limits.connections", "21", address(&Address::connections), 21, each.connections),
      key("address_limits.new_connections", "22", address(&Address::new_connections), 22,
          each.new_connections),
      key("address_limits.messages", "23", address(&Address::messages), 23, each.messages),
      key("address_limits.bytes", "24KiB", address(&Address::bytes), 24 << 10, each.bytes),
      key("address_limits.new_agents", "25", address(&Address::new_agents), 25, each.new_agents),
      key("address_limits.exempt", R"(["10.0.0.0/8", "::2"])", address(&Address::exempt),
          Strings{"10.0.0.0/8", "::2"}, each.exempt),
      key("total_limits.new_connections", "31", total(&Total::new_connections), 31,
          all.new_connections),
      key("total_limits.messages", "2000000", total(&Total::messages), 2'000'000, all.messages),
      key("total_limits.bytes", "34KiB", total(&Total::bytes), 34 << 10, all.bytes),
      key("total_limits.new_agents", "35", total(&Total::new_agents), 35, all.new_agents),
      key("reload.watch", "false", reload(&Reload::watch), false, true),
      key("reload.quiet_time", "11ms", reload(&Reload::quiet_time), 11ms, 300ms),
      key("reload.policy", "drain", reload(&Reload::policy), ReloadPolicy::kDrain,
          ReloadPolicy::kEvict),
      key("reload.drain_deadline", "12s", reload(&Reload::drain_deadline), 12s, 1min),
      key("reload.trial_agents", "13", reload(&Reload::trial_agents), 13, 5),
      key("reload.max_failed_percent", "14", reload(&Reload::max_failed_percent), 14, 20),
      key("reload.trial_time", "15s", reload(&Reload::trial_time), 15s, 30s),
      key("reload.probation", "17s", reload(&Reload::probation), 17s, 1min),
      key("reload.max_pinned", "16", reload(&Reload::max_pinned), 16, 8),
      key("reload.removal_grace", "0s", reload(&Reload::removal_grace), 0s, 10s),
      key("objects.all_classes", "true", at(&ServerConfig::objects, &ObjectsConfig::all_classes),
          true, false),
      key("objects.token_file", "key", at(&ServerConfig::objects, &ObjectsConfig::token_file),
          directory / "key", ""),
      key("admin.token_file", "/run/secrets/hearth",
          at(&ServerConfig::admin, &AdminConfig::token_file), "/run/secrets/hearth", ""),
      key("egress.ca_file", "ca.pem", at(&ServerConfig::egress, &EgressConfig::ca_file),
          directory / "ca.pem", ""),
      key("audit.file", "audit.jsonl", at(&ServerConfig::audit, &AuditConfig::file),
          directory / "audit.jsonl", ""),
      key("tracing.endpoint", "https://c.example:4318/v1/traces", tracing(&TracingConfig::endpoint),
          "https://c.example:4318/v1/traces", ""),
      key("tracing.headers", "[a.key]", tracing(&TracingConfig::headers),
          std::vector{directory / "a.key"}, {}),
      key("tracing.sample", "0.25", tracing(&TracingConfig::sample), 0.25, 1),
      key("tracing.service_name", "shop", tracing(&TracingConfig::service_name), "shop", "hearth"),
      key("log.level", "warn", at(&ServerConfig::log, &LogSettings::level), LogLevel::kWarn,
          LogLevel::kInfo),
      key("log.format", "json", at(&ServerConfig::log, &LogSettings::format), LogFormat::kJson,
          LogFormat::kAuto),
  };
}

TEST_F(ServerFileTest, EveryKeyReachesItsFieldAlone) {
  put("a.key", "X-Key: s3cret\n");
  const std::vector<KeyRow<ServerConfig>> rows = server_keys(path(""));
  for (const KeyRow<ServerConfig>& row : rows) expect_only(row, server(row.file()), rows);
}

TEST_F(ServerFileTest, AddressesAndPathsReachTheirFields) {
  std::filesystem::create_directory(path("c"));
  const ServerConfig config = server(R"(
listen: "[::1]:0"
data: d
tls: {certificate: t/c.pem, key: /k.pem, min_version: 1.3}
plugins: [p, /abs/q]
classes: ./k/../c
)");
  EXPECT_EQ(config.net.host, "::1");
  EXPECT_EQ(config.net.port, 0);
  EXPECT_EQ(config.net.tls.certificate, path("t/c.pem"));
  EXPECT_EQ(config.net.tls.key, "/k.pem");
  EXPECT_EQ(config.net.tls.min_version, net::TlsVersion::k13);
  EXPECT_EQ(config.data, path("d"));
  EXPECT_EQ(config.plugins, (std::vector<std::filesystem::path>{path("p"), "/abs/q"}));
  EXPECT_EQ(config.classes, path("c"));
}

TEST_F(ServerFileTest, AllClassesAsObjectsUnderTheDefaultLimitAreDoubtful) {
  const std::string doubt = doubts(server("objects: {all_classes: true}\n"));
  EXPECT_NE(doubt.find(" 200 objects "), std::string::npos) << doubt;
  EXPECT_NE(doubt.find("set limits.max_active_objects"), std::string::npos) << doubt;
  EXPECT_EQ(doubts(server("")), "");
  EXPECT_EQ(doubts(server("objects: {all_classes: true}\nlimits: {max_active_objects: 200}\n")), "")
      << "the operator has thought of it";
}

TEST_F(ServerFileTest, ANetworkThatMayDoAllIsDoubtful) {
  const std::string tls = "tls: {certificate: c, key: k}\n";
  const std::string auth = "auth: {type: token, token_file: t}\n";
  const std::pair<std::string, bool> cases[] = {
      {"listen: '0.0.0.0:1'\n", true},        {"listen: '[::]:1'\n", true},
      {"listen: '10.1.2.3:1'\n", true},       {"listen: '127.0.0.1:1'\n", false},
      {"listen: 'localhost:1'\n", false},     {"listen: '[::1]:1'\n", false},
      {"listen: '0.0.0.0:1'\n" + tls, false}, {"listen: '0.0.0.0:1'\n" + auth, false},
  };
  for (const auto& [text, is_doubtful] : cases)
    EXPECT_EQ(doubts(server(text)).starts_with("listen opens agents to the network"), is_doubtful)
        << text;
}

TEST_F(ServerFileTest, ARouteThatHidesNothingIsDoubtful) {
  const std::pair<std::string, bool> cases[] = {
      {"/agents/counter/secret", true},
      {"/agents", true},
      {"/agentsx", false},
      {"/v1/agents/counter/secret", false},
  };
  for (const auto& [route, is_doubtful] : cases) {
    const std::string doubt = doubts(server("routes: [{path: " + route + ", status: 410}]\n"));
    EXPECT_EQ(doubt.starts_with("routes has \"" + route + "\", and "), is_doubtful) << doubt;
    EXPECT_EQ(doubt.empty(), !is_doubtful) << doubt;
  }
}

TEST_F(ServerFileTest, AnEmptyFileHasTheDefaultsBesideIt) {
  const ServerConfig config = server("");
  EXPECT_EQ(config.net.host, "127.0.0.1");
  EXPECT_EQ(config.net.port, 8787);
  EXPECT_EQ(config.data, path("data"));
  EXPECT_EQ(config.plugins, std::vector{path("plugins")});
  EXPECT_EQ(config.classes, path("classes"));
}

TEST_F(ServerFileTest, ACheckOfLibrariesCanBeRequired) {
  EXPECT_FALSE(server("require_checked: false\n").require_checked);
  EXPECT_NE(server_mistake("require_checked: maybe\n").find("require_checked"), std::string::npos);
}

TEST_F(ServerFileTest, EachValueTellsWhereItStands) {
  const Sources sources = server("data: d\nlimits:\n  max_name: 5\n").sources;
  ASSERT_EQ(sources.size(), 2U);
  EXPECT_EQ(to_string(sources.at("data")), path("server.yaml").string() + ":1");
  EXPECT_EQ(sources.at("limits.max_name").at, (Position{.line = 3, .column = 13}));
}

TEST_F(ServerFileTest, ShardsAreAsManyAsAskedOrOneACore) {
  ServerConfig config;
  EXPECT_GE(shard_count(config), 1U);
  config.shards = 3;
  EXPECT_EQ(shard_count(config), 3U);
}

TEST_F(ServerFileTest, ANameThatIsTooLongFitsIntoATarget) {
  // A name of 10 kB, as the tests of bad input send it, must reach the endpoint, which refuses it
  // for good.
  const net::NetOptions net = server("").net;
  EXPECT_GT(net.max_target, 10'240U);
  EXPECT_GT(net.max_header, net.max_target);
}

TEST_F(ServerFileTest, SectionsWithAllLinesCommentedOutAreEmpty) {
  EXPECT_EQ(server("limits:\n  # max_name: 5\nlog:\n").limits.max_name, 256U);
}

TEST_F(ServerFileTest, EachMistakeIsNamedOnceAtItsPlace) {
  const std::pair<const char*, std::string> rows[] = {
      // a missing value
      {"listen: \"127.0.0.1:1\"\ndata:\n", "2:1: data: expected a path, found nothing"},
      // unknown keys get the nearest one of their place
      {"lisen: \"127.0.0.1:1\"\n", "1:1: unknown key \"lisen\"; did you mean \"listen\"?"},
      {"limits:\n  max_frames: 1MiB\n",
       "2:3: unknown key \"limits.max_frames\"; did you mean \"max_frame\"?"},
      {"log:\n  colour: always\n",
       "2:3: unknown key \"log.colour\"; the keys here are level and format"},
      // wrong kinds
      {"limits: 5\n", "1:9: limits: expected a mapping (lines of \"key: value\"), found \"5\""},
      {"- a\n", "1:1: expected a mapping (lines of \"key: value\"), found a list"},
      {"plugins: plugins\n",
       "1:10: plugins: expected a list of paths such as [\"plugins\"], found \"plugins\""},
      {"plugins: [a, {b: c}]\n", "1:14: plugins: expected a path, found a mapping"},
      {"data: ''\n", "1:7: data: expected a path, found an empty text"},
      {"data: \"a\\0b\"\n", "1:7: data: a path cannot hold a NUL"},
      {"log: {level: inof}\n",
       "1:14: log.level: expected trace, debug, info, warn or error, found \"inof\"; did you mean "
       "\"info\"?"},
      // a refused value
      {"limits: {max_name: !!int 5}\n",
       "1:20: tags (!name) are not supported; quote a value that is text"},
  };
  for (const auto& [text, mistake] : rows)
    EXPECT_EQ(server_mistake(text), "server.yaml:" + mistake);
}

TEST_F(ServerFileTest, ShardsAreAutoOrANumber) {
  EXPECT_FALSE(server("shards: auto\n").shards);
  EXPECT_EQ(server("shards: 1\n").shards, 1U);
  EXPECT_EQ(server("shards: 256\n").shards, 256U);
  for (const std::string_view value : {"0", "257", "-1", "Auto", "two", "99999999999999999999"}) {
    EXPECT_EQ(server_mistake("shards: " + std::string(value) + "\n"),
              "server.yaml:1:9: shards: expected auto or a whole number from 1 to 256, found \"" +
                  std::string(value) + "\"");
  }
  EXPECT_EQ(server_mistake("shards: [1]\n"),
            "server.yaml:1:9: shards: expected auto or a whole number from 1 to 256, found a list");
}

TEST_F(ServerFileTest, AnAddressWithoutQuotesSaysToQuoteIt) {
  EXPECT_EQ(server("listen: 127.0.0.1:99\n").net.port, 99);
  EXPECT_EQ(server_mistake("listen: [1]\n"),
            "server.yaml:1:9: listen: expected HOST:PORT in quotes, such as \"127.0.0.1:8787\" or "
            "\"[::1]:8787\", found a list");
  EXPECT_EQ(server_mistake("listen: \":80\"\n"),
            "server.yaml:1:9: listen: expected a host before the colon (0.0.0.0 means all of "
            "IPv4), found \":80\"");
}

TEST_F(ServerFileTest, CountsAreHeldToTheirBounds) {
  EXPECT_EQ(server("limits: {max_connections: 1000000}\n").net.max_connections, 1'000'000U);
  for (const std::string_view value : {"0", "1000001", "4294967297", "99999999999999999999"}) {
    EXPECT_EQ(server_mistake("limits: {max_connections: " + std::string(value) + "}\n"),
              "server.yaml:1:27: limits.max_connections: must be from 1 to 1000000, found \"" +
                  std::string(value) + "\"");
  }
  EXPECT_EQ(server_mistake("limits: {max_connections: -1}\n"),
            "server.yaml:1:27: limits.max_connections: expected a whole number, found \"-1\"");
  EXPECT_EQ(server_mistake("limits: {max_connections: '5'}\n"),
            "server.yaml:1:27: limits.max_connections: expected a whole number, found the text "
            "\"5\" (a number has no quotes)");
}

TEST_F(ServerFileTest, SizesAreHeldToTheirBounds) {
  EXPECT_EQ(server("limits: {max_frame: 1KiB}\n").net.max_frame, 1024U);
  EXPECT_EQ(server("limits: {max_frame: 256MiB}\n").net.max_frame, 256U << 20U);
  for (const std::string_view value : {"0", "1023", "257MiB", "99999999999999999999GiB"}) {
    EXPECT_EQ(server_mistake("limits: {max_frame: " + std::string(value) + "}\n"),
              "server.yaml:1:21: limits.max_frame: must be from 1KiB to 256MiB, found \"" +
                  std::string(value) + "\"");
  }
  EXPECT_EQ(server_mistake("limits: {max_name: 1025}\n"),
            "server.yaml:1:20: limits.max_name: must be from 1 to 1KiB, found \"1025\"");
}

TEST_F(ServerFileTest, DurationsAreHeldToTheirBounds) {
  EXPECT_EQ(server("limits: {start_timeout: 10ms}\n").runtime.start_timeout, 10ms);
  EXPECT_EQ(server("limits: {ping_interval: 0}\n").net.ping_interval, 0ms);
  for (const std::string_view value : {"0s", "9ms", "61m", "99999999999999999999h"}) {
    EXPECT_EQ(server_mistake("limits: {start_timeout: " + std::string(value) + "}\n"),
              "server.yaml:1:25: limits.start_timeout: must be from 10ms to 1h, found \"" +
                  std::string(value) + "\"");
  }
  EXPECT_EQ(server_mistake("limits: {start_timeout: 30}\n"),
            "server.yaml:1:25: limits.start_timeout: expected a duration with its unit, such as "
            "30s, found \"30\"");
}

TEST_F(ServerFileTest, NoPluginsAtAllIsAllowed) {
  EXPECT_TRUE(server("plugins: []\n").plugins.empty());
}

}  // namespace
}  // namespace hearth::config
