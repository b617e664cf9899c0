#include "server/settings.hpp"

#include "json/json.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

namespace hearth::server {
namespace {

// An agent's handle has eight bits for its shard.
constexpr std::size_t kMaxShards = 256;

// The network layer has no word for "never"; a connection does not live for a year.
constexpr std::chrono::hours kNever{24 * 365};

// A name that is too long must get as far as the agents endpoint: only there can a client be told to stop
// trying. So a target has room for ten times the longest name, percent-encoded or not.
constexpr std::size_t kMaxTarget = std::size_t{16} << 10;
constexpr std::size_t kMaxHeader = std::size_t{32} << 10;

}  // namespace

runtime::RuntimeLimits runtime_limits(const config::ServerConfig& server) {
  const config::ServerLimits& limits = server.limits;
  runtime::RuntimeLimits result;
  result.max_live_agents = limits.max_live_agents;
  result.max_waiting = limits.max_waiting;
  result.client_memory = limits.client_memory_bytes;
  result.recovery_share = static_cast<int>(limits.recovery_share);
  result.start_timeout = limits.start_timeout;
  result.event_timeout = limits.call_timeout;
  return result;
}

runtime::ClassSettings class_settings(const config::ClassConfig& agent_class) {
  const config::ClassLimits& limits = agent_class.limits;
  runtime::ClassSettings result;
  result.durability = agent_class.durability == config::Durability::kPower
                          ? runtime::Durability::kPower
                          : runtime::Durability::kProcess;
  result.idle_timeout = agent_class.idle_timeout;
  result.evict_grace = agent_class.evict_grace;
  result.max_events = limits.max_events;
  result.max_state_bytes = limits.max_value_bytes;
  result.sql.max_value_bytes = limits.max_value_bytes;
  result.sql.max_sql_bytes = limits.max_sql_bytes;
  result.sql.max_variables = static_cast<int>(limits.max_variables);
  result.sql.max_step_time = limits.sql_time;
  result.fibers.recovery_timeout = agent_class.fibers.recovery_timeout;
  result.fibers.max_attempts = static_cast<int>(agent_class.fibers.max_attempts);
  result.fibers.max_recoveries = static_cast<int>(agent_class.fibers.max_recoveries);
  result.fibers.retry_base = agent_class.fibers.retry_base;
  result.fibers.max_running = agent_class.fibers.max_running;
  result.fibers.max_snapshot_bytes = limits.max_value_bytes;
  result.fibers.keep_dead = agent_class.fibers.keep_failed;
  result.managed.keep_completed = agent_class.fibers.keep_completed;
  result.managed.keep_failed = agent_class.fibers.keep_failed;
  result.managed.max_records = agent_class.fibers.max_records;
  result.managed.max_json_bytes = limits.max_value_bytes;
  result.schedules.timeout = agent_class.schedules.timeout;
  result.schedules.max_schedules = agent_class.schedules.max_schedules;
  result.schedules.max_running = agent_class.schedules.max_running;
  result.schedules.max_payload_bytes = limits.max_value_bytes;
  result.queue.timeout = agent_class.queue.timeout;
  result.queue.max_items = agent_class.queue.max_items;
  result.queue.max_payload_bytes = limits.max_value_bytes;
  result.keep_alive_interval = agent_class.keep_alive_interval;
  result.options = dump_json(agent_class.options);
  return result;
}

net::NetOptions net_options(const config::ServerConfig& server) {
  const config::ServerLimits& limits = server.limits;
  net::NetOptions result;
  result.host = server.listen.host;
  result.port = server.listen.port;
  result.max_connections = limits.max_connections;
  result.max_target = kMaxTarget;
  result.max_header = kMaxHeader;
  result.max_frame = limits.max_frame_bytes;
  result.max_body = limits.max_body_bytes;
  result.send_queue = limits.send_queue_bytes;
  result.min_rate = limits.min_rate;
  result.handshake_timeout = limits.handshake_timeout;
  result.keep_alive_timeout = limits.http_idle_timeout;
  result.ping_interval = limits.ping_interval.count() == 0 ? kNever : limits.ping_interval;
  result.ping_timeout = limits.ping_timeout;
  return result;
}

std::size_t shard_count(const config::ServerConfig& server) {
  const std::size_t wanted = server.shards.value_or(std::thread::hardware_concurrency());
  return std::clamp<std::size_t>(wanted, 1, kMaxShards);
}

}  // namespace hearth::server
