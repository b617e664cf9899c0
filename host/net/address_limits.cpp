#include "net/address_limits.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace hearth::net {
namespace {

std::int64_t nanoseconds_of(SocketTime time) {
  return std::chrono::nanoseconds(time.time_since_epoch()).count();
}

}  // namespace

std::string_view name_of(AddressLimit limit) {
  switch (limit) {
    case AddressLimit::kConnections: return "connections";
    case AddressLimit::kNewConnections: return "new_connections";
    case AddressLimit::kMessages: return "messages";
    case AddressLimit::kBytes: return "bytes";
    case AddressLimit::kNewAgents: return "new_agents";
  }
  return "unknown";
}

bool Rate::take(double amount, double a_second, std::chrono::nanoseconds span, SocketTime now) {
  if (a_second <= 0) return true;
  const std::int64_t present = nanoseconds_of(now);
  // NetOptions::max_frame bounds the amount, so the cost does not overflow.
  const auto cost = static_cast<std::int64_t>(amount / a_second * 1e9);
  std::int64_t paid_at = paid_at_ns_.load();
  for (;;) {
    const std::int64_t begin = std::max(paid_at, present);
    if (begin > present && begin + cost > present + span.count()) return false;
    if (paid_at_ns_.compare_exchange_weak(paid_at, begin + cost)) return true;
  }
}

bool Rate::is_unused(SocketTime now) const {
  return paid_at_ns_.load() <= nanoseconds_of(now);
}

AddressPolicy::AddressPolicy(AddressLimits limits, Metrics& metrics, Logger& logger)
    : limits_(std::move(limits)), event_("net.address_limited"), logger_(logger) {
  count_in(metrics, "hearth_addresses_limited_total",
           "Connections, messages and new agents refused because their address had too many.");
}

AddressPolicy::AddressPolicy(const TotalLimits& limits, Metrics& metrics, Logger& logger)
    : limits_{.connections = 0,
              .new_connections = limits.new_connections,
              .messages = limits.messages,
              .bytes = limits.bytes,
              .new_agents = limits.new_agents,
              .exempt = {}},
      event_("net.total_limited"),
      logger_(logger) {
  count_in(metrics, "hearth_total_limited_total",
           "Connections, messages and new agents refused because all clients had too many.");
}

void AddressPolicy::count_in(Metrics& metrics, const char* metric, const char* help) {
  for (std::size_t i = 0; i < kLimits; ++i) {
    counters_[i] = &metrics.counter(
        metric, help, {{"limit", std::string(name_of(static_cast<AddressLimit>(i)))}});
  }
}

void AddressPolicy::note(AddressLimit limit) const {
  counters_[static_cast<std::size_t>(limit)]->add();
  const std::string_view name = name_of(limit);
  logger_.write_limited(LogLevel::kWarn, event_, {name}, {{"limit", name}});
}

bool AddressUse::may_connect(SocketTime now) {
  const AddressLimits& limits = policy_->limits();
  if (limits.connections != 0 && connections_.load() >= limits.connections)
    return refused(AddressLimit::kConnections);
  if (!new_connections_.take(1, limits.new_connections, kSpan, now))
    return refused(AddressLimit::kNewConnections);
  if (total_ && !total_->may_connect(now)) return false;
  connections_.fetch_add(1);
  return true;
}

void AddressUse::leave() {
  connections_.fetch_sub(1);
  if (total_) total_->leave();
}

bool AddressUse::may_send(std::size_t messages, std::size_t bytes, SocketTime now) {
  const AddressLimits& limits = policy_->limits();
  const auto takes = [now](Rate& rate, std::size_t amount, double a_second) {
    return amount == 0 || rate.take(static_cast<double>(amount), a_second, kSpan, now);
  };
  if (!takes(messages_, messages, limits.messages)) return refused(AddressLimit::kMessages);
  if (!takes(bytes_, bytes, static_cast<double>(limits.bytes)))
    return refused(AddressLimit::kBytes);
  return !total_ || total_->may_send(messages, bytes, now);
}

bool AddressUse::may_make_agent(SocketTime now) {
  const double a_second = policy_->limits().new_agents / 60.0;
  if (!new_agents_.take(1, a_second, kAgentSpan, now)) return refused(AddressLimit::kNewAgents);
  return !total_ || total_->may_make_agent(now);
}

bool AddressUse::is_unused(SocketTime now) const {
  return connections_.load() == 0 && new_connections_.is_unused(now) && messages_.is_unused(now) &&
         bytes_.is_unused(now) && new_agents_.is_unused(now);
}

bool ClientAddress::may_send(std::size_t messages, std::size_t bytes) const {
  if (messages == 0 && bytes == 0) return true;  // without reading the clock
  return use_->may_send(messages, bytes, std::chrono::steady_clock::now());
}

bool ClientAddress::may_make_agent() const {
  return use_->may_make_agent(std::chrono::steady_clock::now());
}

}  // namespace hearth::net
