#include "server/settings.hpp"

#include <gtest/gtest.h>

#include <chrono>

namespace hearth::server {
namespace {

using std::chrono::milliseconds;

TEST(SettingsTest, EveryLimitOfTheServerReachesItsLayer) {
  config::ServerConfig server;
  server.listen = {.host = "::1", .port = 99};
  server.limits = {.max_live_agents = 1,
                   .max_connections = 2,
                   .max_frame_bytes = 3,
                   .max_body_bytes = 4,
                   .send_queue_bytes = 5,
                   .max_name_bytes = 6,
                   .start_timeout = milliseconds(7),
                   .call_timeout = milliseconds(8),
                   .max_waiting = 9,
                   .recovery_share = 11,
                   .shutdown_grace = milliseconds(10),
                   .ping_interval = milliseconds(11),
                   .ping_timeout = milliseconds(12),
                   .handshake_timeout = milliseconds(13),
                   .http_idle_timeout = milliseconds(14)};

  const runtime::RuntimeLimits limits = runtime_limits(server);
  EXPECT_EQ(limits.max_live_agents, 1U);
  EXPECT_EQ(limits.start_timeout, milliseconds(7));
  EXPECT_EQ(limits.event_timeout, milliseconds(8));
  EXPECT_EQ(limits.max_waiting, 9U);
  EXPECT_EQ(limits.recovery_share, 11);

  const net::NetOptions net = net_options(server);
  EXPECT_EQ(net.host, "::1");
  EXPECT_EQ(net.port, 99);
  EXPECT_EQ(net.max_connections, 2U);
  EXPECT_EQ(net.max_frame, 3U);
  EXPECT_EQ(net.max_body, 4U);
  EXPECT_EQ(net.send_queue, 5U);
  EXPECT_EQ(net.ping_interval, milliseconds(11));
  EXPECT_EQ(net.ping_timeout, milliseconds(12));
  EXPECT_EQ(net.handshake_timeout, milliseconds(13));
  EXPECT_EQ(net.keep_alive_timeout, milliseconds(14));
}

TEST(SettingsTest, ANameThatIsTooLongFitsIntoATarget) {
  // 10 kB of name, as the bad input tests send it, must reach the endpoint that refuses it for good.
  EXPECT_GT(net_options({}).max_target, 10'240U);
  EXPECT_GT(net_options({}).max_header, net_options({}).max_target);
}

TEST(SettingsTest, NoPingsAreAVeryLongInterval) {
  config::ServerConfig server;
  server.limits.ping_interval = milliseconds(0);
  EXPECT_GE(net_options(server).ping_interval, std::chrono::hours(24 * 365));
}

TEST(SettingsTest, EverySettingOfAClassReachesTheRuntime) {
  config::ClassConfig agent_class;
  agent_class.durability = config::Durability::kPower;
  agent_class.idle_timeout = milliseconds(1);
  agent_class.evict_grace = milliseconds(2);
  agent_class.limits = {.max_value_bytes = 3,
                        .max_sql_bytes = 4,
                        .max_variables = 5,
                        .sql_time = milliseconds(6),
                        .max_events = 7};
  agent_class.fibers = {.recovery_timeout = milliseconds(9),
                        .max_attempts = 10,
                        .max_recoveries = 22,
                        .retry_base = milliseconds(11),
                        .max_running = 12,
                        .keep_completed = milliseconds(13),
                        .keep_failed = milliseconds(14),
                        .max_records = 15};
  agent_class.schedules = {.timeout = milliseconds(16), .max_schedules = 17, .max_running = 18};
  agent_class.queue = {.timeout = milliseconds(19), .max_items = 20};
  agent_class.keep_alive_interval = milliseconds(21);
  agent_class.options = parse_json(R"({"start":8})").value();

  const runtime::ClassSettings settings = class_settings(agent_class);
  EXPECT_EQ(settings.durability, runtime::Durability::kPower);
  EXPECT_EQ(settings.managed.keep_completed, milliseconds(13));
  EXPECT_EQ(settings.managed.keep_failed, milliseconds(14));
  EXPECT_EQ(settings.managed.max_records, 15U);
  EXPECT_EQ(settings.managed.max_json_bytes, 3U);
  EXPECT_EQ(settings.schedules.timeout, milliseconds(16));
  EXPECT_EQ(settings.schedules.max_schedules, 17U);
  EXPECT_EQ(settings.schedules.max_running, 18U);
  EXPECT_EQ(settings.schedules.max_payload_bytes, 3U);
  EXPECT_EQ(settings.queue.timeout, milliseconds(19));
  EXPECT_EQ(settings.queue.max_items, 20U);
  EXPECT_EQ(settings.queue.max_payload_bytes, 3U);
  EXPECT_EQ(settings.keep_alive_interval, milliseconds(21));
  EXPECT_EQ(settings.idle_timeout, milliseconds(1));
  EXPECT_EQ(settings.evict_grace, milliseconds(2));
  EXPECT_EQ(settings.max_state_bytes, 3U);
  EXPECT_EQ(settings.sql.max_value_bytes, 3U);
  EXPECT_EQ(settings.sql.max_sql_bytes, 4U);
  EXPECT_EQ(settings.sql.max_variables, 5);
  EXPECT_EQ(settings.sql.max_step_time, milliseconds(6));
  EXPECT_EQ(settings.max_events, 7U);
  EXPECT_EQ(settings.options, R"({"start":8})");
  EXPECT_EQ(settings.fibers.recovery_timeout, milliseconds(9));
  EXPECT_EQ(settings.fibers.max_attempts, 10);
  EXPECT_EQ(settings.fibers.max_recoveries, 22);
  EXPECT_EQ(settings.fibers.keep_dead, milliseconds(14));
  EXPECT_EQ(settings.fibers.retry_base, milliseconds(11));
  EXPECT_EQ(settings.fibers.max_running, 12U);
  EXPECT_EQ(settings.fibers.max_snapshot_bytes, 3U);
}

TEST(SettingsTest, ShardsAreAsManyAsAskedOrOneACore) {
  config::ServerConfig server;
  EXPECT_GE(shard_count(server), 1U);
  server.shards = 3;
  EXPECT_EQ(shard_count(server), 3U);
}

}  // namespace
}  // namespace hearth::server
