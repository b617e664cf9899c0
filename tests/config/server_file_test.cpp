#include "config/server_file.hpp"

#include "config/config_files.hpp"

#include <chrono>
#include <string>

namespace hearth::config {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

class ServerFileTest : public ConfigFilesTest {};

TEST_F(ServerFileTest, EveryKeyReachesItsField) {
  std::filesystem::create_directory(path("c"));
  const ServerConfig config = server(R"(
listen: "[::1]:0"
data: d
tls: {certificate: t/c.pem, key: /k.pem, min_version: 1.3}
plugins: [p, /abs/q]
classes: ./k/../c
shards: 3
compression: context_takeover
allowed_origins: ["https://app.example", "null"]
allowed_hosts: ["app.example:8443", "*"]
limits:
  max_live_agents: 1
  max_active_objects: 3
  max_connections: 2
  max_frame: 3KiB
  max_body: 4KiB
  send_queue: 65KiB
  client_memory: 66MiB
  min_rate: 67
  max_name: 6
  start_timeout: 70ms
  call_timeout: 8s
  max_waiting: 9
  recovery_share: 11
  shutdown_grace: 10m
  ping_interval: 11s
  ping_timeout: 12s
  handshake_timeout: 13s
  http_idle_timeout: 1h
  soft_hang: 15ms
  hard_hang: 16s
address_limits: {connections: 21, new_connections: 22, messages: 23, bytes: 24KiB, new_agents: 25,
  exempt: ["10.0.0.0/8", "::2"]}
total_limits: {new_connections: 31, messages: 2000000, bytes: 34KiB, new_agents: 35}
objects: {all_classes: true}
log:
  level: warn
  format: json
)");
  EXPECT_EQ(config.net.per_address.connections, 21U);
  EXPECT_EQ(config.net.per_address.new_connections, 22U);
  EXPECT_EQ(config.net.per_address.messages, 23U);
  EXPECT_EQ(config.net.per_address.bytes, 24U << 10U);
  EXPECT_EQ(config.net.per_address.new_agents, 25U);
  EXPECT_EQ(config.net.per_address.exempt, (std::vector<std::string>{"10.0.0.0/8", "::2"}));
  EXPECT_EQ(config.net.in_total.new_connections, 31U);
  EXPECT_EQ(config.net.in_total.messages, 2'000'000U);
  EXPECT_EQ(config.net.in_total.bytes, 34U << 10U);
  EXPECT_EQ(config.net.in_total.new_agents, 35U);
  EXPECT_EQ(config.net.host, "::1");
  EXPECT_EQ(config.net.port, 0);
  EXPECT_EQ(config.net.tls.certificate, path("t/c.pem"));
  EXPECT_EQ(config.net.tls.key, "/k.pem");
  EXPECT_EQ(config.net.tls.min_version, net::TlsVersion::k13);
  EXPECT_EQ(config.data, path("d"));
  EXPECT_EQ(config.plugins, (std::vector<std::filesystem::path>{path("p"), "/abs/q"}));
  EXPECT_EQ(config.classes, path("c"));
  EXPECT_EQ(config.shards, 3U);
  EXPECT_EQ(config.net.compression, net::Compression::kContextTakeover);
  EXPECT_EQ(config.runtime.max_live_agents, 1U);
  EXPECT_EQ(config.runtime.max_active_objects, 3U);
  EXPECT_EQ(config.net.max_connections, 2U);
  EXPECT_EQ(config.net.max_frame, 3072U);
  EXPECT_EQ(config.net.max_body, 4096U);
  EXPECT_EQ(config.net.send_queue, 66560U);
  EXPECT_EQ(config.runtime.client_memory, std::size_t{66} << 20);
  EXPECT_EQ(config.net.min_rate, 67U);
  EXPECT_EQ(config.allowed_origins, (std::vector<std::string>{"https://app.example", "null"}));
  EXPECT_EQ(config.allowed_hosts, (std::vector<std::string>{"app.example:8443", "*"}));
  EXPECT_EQ(config.limits.max_name, 6U);
  EXPECT_EQ(config.runtime.start_timeout, milliseconds(70));
  EXPECT_EQ(config.runtime.call_timeout, seconds(8));
  EXPECT_EQ(config.runtime.max_waiting, 9U);
  EXPECT_EQ(config.runtime.recovery_share, 11);
  EXPECT_EQ(config.limits.shutdown_grace, minutes(10));
  EXPECT_EQ(config.net.ping_interval, seconds(11));
  EXPECT_EQ(config.net.ping_timeout, seconds(12));
  EXPECT_EQ(config.net.handshake_timeout, seconds(13));
  EXPECT_EQ(config.net.http_idle_timeout, hours(1));
  EXPECT_EQ(config.limits.soft_hang, milliseconds(15));
  EXPECT_EQ(config.limits.hard_hang, seconds(16));
  EXPECT_TRUE(config.objects.all_classes);
  EXPECT_EQ(config.log.level, LogLevel::kWarn);
  EXPECT_EQ(config.log.format, LogFormat::kJson);
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
  EXPECT_FALSE(config.shards);
  EXPECT_EQ(config.net.compression, net::Compression::kNone);
  EXPECT_EQ(config.runtime.max_live_agents, 10'000U);
  EXPECT_EQ(config.runtime.max_active_objects, 200U);
  EXPECT_EQ(config.net.max_connections, 10'000U);
  EXPECT_EQ(config.net.max_frame, 4U << 20U);
  EXPECT_EQ(config.net.max_body, 4U << 20U);
  EXPECT_EQ(config.net.send_queue, 4U << 20U);
  EXPECT_EQ(config.limits.max_name, 256U);
  EXPECT_EQ(config.runtime.start_timeout, seconds(10));
  EXPECT_EQ(config.runtime.call_timeout, minutes(5));
  EXPECT_EQ(config.runtime.max_waiting, 1000U);
  EXPECT_EQ(config.runtime.recovery_share, 40);
  EXPECT_EQ(config.limits.shutdown_grace, seconds(10));
  EXPECT_EQ(config.net.ping_interval, seconds(30));
  EXPECT_EQ(config.net.ping_timeout, seconds(10));
  EXPECT_EQ(config.net.handshake_timeout, seconds(10));
  EXPECT_EQ(config.net.http_idle_timeout, seconds(60));
  EXPECT_EQ(config.limits.soft_hang, seconds(1));
  EXPECT_EQ(config.limits.hard_hang, seconds(60));
  EXPECT_EQ(config.log.level, LogLevel::kInfo);
  EXPECT_EQ(config.log.format, LogFormat::kAuto);
}

TEST_F(ServerFileTest, ACheckOfLibrariesCanBeRequired) {
  EXPECT_FALSE(server("").require_checked);
  EXPECT_FALSE(server("require_checked: false\n").require_checked);
  EXPECT_TRUE(server("require_checked: true\n").require_checked);
  EXPECT_NE(server_mistake("require_checked: maybe\n").find("require_checked"), std::string::npos);
}

TEST_F(ServerFileTest, HowLibrariesAreReplacedCanBeSet) {
  const ReloadConfig reload = server(R"(
reload:
  watch: false
  quiet_time: 11ms
  policy: drain
  drain_deadline: 12s
  trial_agents: 13
  max_failed_percent: 14
  trial_time: 15s
  probation: 17s
  max_pinned: 16
  removal_grace: 0s
)")
                                  .reload;
  EXPECT_FALSE(reload.watch);
  EXPECT_EQ(reload.quiet_time, milliseconds(11));
  EXPECT_EQ(reload.policy, ReloadPolicy::kDrain);
  EXPECT_EQ(reload.drain_deadline, seconds(12));
  EXPECT_EQ(reload.trial_agents, 13U);
  EXPECT_EQ(reload.max_failed_percent, 14U);
  EXPECT_EQ(reload.trial_time, seconds(15));
  EXPECT_EQ(reload.probation, seconds(17));
  EXPECT_EQ(reload.max_pinned, 16U);
  EXPECT_EQ(reload.removal_grace, seconds(0));
}

TEST_F(ServerFileTest, WithoutAWordLibrariesAreWatchedAndTriedFirst) {
  const ReloadConfig reload = server("").reload;
  EXPECT_TRUE(reload.watch);
  EXPECT_EQ(reload.quiet_time, milliseconds(300));
  EXPECT_EQ(reload.policy, ReloadPolicy::kEvict);
  EXPECT_EQ(reload.drain_deadline, minutes(1));
  EXPECT_EQ(reload.trial_agents, 5U);
  EXPECT_EQ(reload.max_failed_percent, 20U);
  EXPECT_EQ(reload.trial_time, seconds(30));
  EXPECT_EQ(reload.probation, minutes(1));
  EXPECT_EQ(reload.max_pinned, 8U);
  EXPECT_EQ(reload.removal_grace, seconds(10));
}

TEST_F(ServerFileTest, TheAdministratorsTokenMayBeInAFileOfTheOperators) {
  EXPECT_EQ(server("admin: {token_file: /run/secrets/hearth}\n").admin.token_file,
            "/run/secrets/hearth");
  EXPECT_TRUE(server("").admin.token_file.empty());
}

TEST_F(ServerFileTest, TheKeyOfObjectsIsInAFile) {
  EXPECT_EQ(server("objects: {token_file: key}\n").objects.token_file, path("key"));
  EXPECT_TRUE(server("").objects.token_file.empty());
}

TEST_F(ServerFileTest, AuthoritiesThatRequestsTrustMayBeInAFile) {
  EXPECT_EQ(server("egress: {ca_file: ca.pem}\n").egress.ca_file, path("ca.pem"));
  EXPECT_TRUE(server("").egress.ca_file.empty());
  EXPECT_EQ(server("audit: {file: audit.jsonl}\n").audit.file, path("audit.jsonl"));
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

TEST_F(ServerFileTest, AMissingValueIsAMistake) {
  EXPECT_EQ(server_mistake("listen: \"127.0.0.1:1\"\ndata:\n"),
            "server.yaml:2:1: data: expected a path, found nothing");
}

TEST_F(ServerFileTest, UnknownKeysGetTheNearestOneOfTheirPlace) {
  EXPECT_EQ(server_mistake("lisen: \"127.0.0.1:1\"\n"),
            "server.yaml:1:1: unknown key \"lisen\"; did you mean \"listen\"?");
  EXPECT_EQ(server_mistake("limits:\n  max_frames: 1MiB\n"),
            "server.yaml:2:3: unknown key \"limits.max_frames\"; did you mean \"max_frame\"?");
  EXPECT_EQ(server_mistake("log:\n  colour: always\n"),
            "server.yaml:2:3: unknown key \"log.colour\"; the keys here are level and format");
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
  EXPECT_EQ(server("limits: {start_timeout: 10ms}\n").runtime.start_timeout, milliseconds(10));
  EXPECT_EQ(server("limits: {ping_interval: 0}\n").net.ping_interval, milliseconds(0));
  for (const std::string_view value : {"0s", "9ms", "61m", "99999999999999999999h"}) {
    EXPECT_EQ(server_mistake("limits: {start_timeout: " + std::string(value) + "}\n"),
              "server.yaml:1:25: limits.start_timeout: must be from 10ms to 1h, found \"" +
                  std::string(value) + "\"");
  }
  EXPECT_EQ(server_mistake("limits: {start_timeout: 30}\n"),
            "server.yaml:1:25: limits.start_timeout: expected a duration with its unit, such as "
            "30s, found \"30\"");
}

TEST_F(ServerFileTest, WrongKindsAreNamed) {
  EXPECT_EQ(server_mistake("limits: 5\n"),
            "server.yaml:1:9: limits: expected a mapping (lines of \"key: value\"), found \"5\"");
  EXPECT_EQ(server_mistake("- a\n"),
            "server.yaml:1:1: expected a mapping (lines of \"key: value\"), found a list");
  EXPECT_EQ(server_mistake("plugins: plugins\n"),
            "server.yaml:1:10: plugins: expected a list of paths such as [\"plugins\"], found "
            "\"plugins\"");
  EXPECT_EQ(server_mistake("plugins: [a, {b: c}]\n"),
            "server.yaml:1:14: plugins: expected a path, found a mapping");
  EXPECT_EQ(server_mistake("data: ''\n"),
            "server.yaml:1:7: data: expected a path, found an empty text");
  EXPECT_EQ(server_mistake("data: \"a\\0b\"\n"), "server.yaml:1:7: data: a path cannot hold a NUL");
  EXPECT_EQ(server_mistake("log: {level: inof}\n"),
            "server.yaml:1:14: log.level: expected trace, debug, info, warn or error, found "
            "\"inof\"; did you mean \"info\"?");
}

TEST_F(ServerFileTest, ARefusedValueIsReportedOnce) {
  EXPECT_EQ(server_mistake("limits: {max_name: !!int 5}\n"),
            "server.yaml:1:20: tags (!name) are not supported; quote a value "
            "that is text");
}

TEST_F(ServerFileTest, NoPluginsAtAllIsAllowed) {
  EXPECT_TRUE(server("plugins: []\n").plugins.empty());
}

}  // namespace
}  // namespace hearth::config
