#pragma once
// Limits for all connections of one client address, and for all clients together.

#include "base/logger.hpp"
#include "net/options.hpp"
#include "telemetry/metrics.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

namespace hearth::net {

// Which limit an address has reached.
enum class AddressLimit { kConnections, kNewConnections, kMessages, kBytes, kNewAgents };

// The name of a limit, for logs and as the metric's label: "new_connections".
[[nodiscard]] std::string_view name_of(AddressLimit limit);

// Admits `a_second` units a second, and at most those of `span` at once. A larger amount is
// admitted when no debt is left, and delays later amounts.
//
// Threads   Any.
class Rate {
 public:
  // `a_second` 0: no limit.
  [[nodiscard]] bool take(double amount, double a_second, std::chrono::nanoseconds span,
                          SocketTime now);
  // Whether no debt is left.
  [[nodiscard]] bool is_unused(SocketTime now) const;

 private:
  std::atomic<std::int64_t> paid_at_ns_ = 0;  // when no debt will be left
};

// The limits of each address, or of all addresses together. A reached limit counts in a metric and
// is logged:
//   an address   hearth_addresses_limited_total{limit}   net.address_limited, without the address
//   all          hearth_total_limited_total{limit}       net.total_limited
//
// Threads   Any.
// Lifetime  The logger and the metrics outlive it.
class AddressPolicy {
 public:
  AddressPolicy(AddressLimits limits, Metrics& metrics, Logger& logger);
  AddressPolicy(const TotalLimits& limits, Metrics& metrics, Logger& logger);

  [[nodiscard]] const AddressLimits& limits() const { return limits_; }
  void note(AddressLimit limit) const;

 private:
  static constexpr std::size_t kLimits = static_cast<std::size_t>(AddressLimit::kNewAgents) + 1;

  void count_in(Metrics& metrics, const char* metric, const char* help);

  const AddressLimits limits_;
  const std::string_view event_;              // of the log
  std::array<Counter*, kLimits> counters_{};  // never null; the metrics own them
  Logger& logger_;
};

// The use of one address, or of all addresses together (`total_` of each address).
//
// Threads   Any.
class AddressUse {
 public:
  // The span of a Rate, for all limits but new agents. As NetOptions::rate_window.
  static constexpr std::chrono::seconds kSpan{10};
  // The span for new agents, which are counted by the minute.
  static constexpr std::chrono::seconds kAgentSpan{60};

  // If there is a `total`, its limits are checked after the address's own.
  explicit AddressUse(std::shared_ptr<const AddressPolicy> policy,
                      std::shared_ptr<AddressUse> total = nullptr)
      : policy_(std::move(policy)), total_(std::move(total)) {}

  // True: counts one more connection, until leave() is called.
  [[nodiscard]] bool may_connect(SocketTime now);
  void leave();
  [[nodiscard]] bool may_send(std::size_t messages, std::size_t bytes, SocketTime now);
  [[nodiscard]] bool may_make_agent(SocketTime now);
  // Whether the object has no state that matters, so that it may be removed.
  [[nodiscard]] bool is_unused(SocketTime now) const;

 private:
  [[nodiscard]] bool refused(AddressLimit limit) const {
    policy_->note(limit);
    return false;
  }

  std::shared_ptr<const AddressPolicy> policy_;
  std::shared_ptr<AddressUse> total_;  // shared with the other addresses; null: this is the total
  std::atomic<std::uint32_t> connections_ = 0;
  Rate new_connections_;
  Rate messages_;
  Rate bytes_;
  Rate new_agents_;
};

// The limits of a client's address, as a connection sees them. It counts as a connection of its
// address while it lives.
//
// Threads   Any.
// Lifetime  The HttpServer outlives it.
class ClientAddress {
 public:
  // After may_connect() has returned true.
  explicit ClientAddress(std::shared_ptr<AddressUse> use) : use_(std::move(use)) {}
  ~ClientAddress() { use_->leave(); }
  ClientAddress(const ClientAddress&) = delete;
  ClientAddress& operator=(const ClientAddress&) = delete;

  // Takes this many messages or requests, and bytes; either may be 0. False: the address, or all
  // addresses together, have sent too much, which was counted and logged.
  [[nodiscard]] bool may_send(std::size_t messages, std::size_t bytes) const;
  // The same for one agent that does not exist yet.
  [[nodiscard]] bool may_make_agent() const;

 private:
  const std::shared_ptr<AddressUse> use_;  // shared with the table and the address's connections
};

}  // namespace hearth::net
