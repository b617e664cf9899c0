#pragma once
// What one address of clients may use, over all its connections; and what all of them may.

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

// Lets through so much a second, and at most what a span of time brings at once. What is larger
// than that goes through when nothing else has for the span, and is paid off afterwards.
//
// Threads   Any.
class Rate {
 public:
  // `a_second` 0: no limit.
  [[nodiscard]] bool take(double amount, double a_second, std::chrono::nanoseconds span,
                          SocketTime now);
  // Whether all that was taken is paid off.
  [[nodiscard]] bool is_unused(SocketTime now) const;

 private:
  std::atomic<std::int64_t> paid_at_ns_ = 0;  // when what was taken will be paid off
};

// The limits of each address, or of all together, and who is told that one is reached:
//   an address   hearth_addresses_limited_total{limit}   net.address_limited, without the address
//   all          hearth_total_limited_total{limit}       net.total_limited
//
// Threads   Any.
// Lifetime  Within that of the logger and the metrics.
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

// What one address has used; or all together, which is what each address has for its `total`.
//
// Threads   Any.
class AddressUse {
 public:
  // Of rates: what may come at once after a silence. As NetOptions::rate_window.
  static constexpr std::chrono::seconds kSpan{10};
  // ... and of new agents, which are counted by the minute.
  static constexpr std::chrono::seconds kAgentSpan{60};

  // What the address's own limits let through is asked of `total` too, if there is one.
  explicit AddressUse(std::shared_ptr<const AddressPolicy> policy,
                      std::shared_ptr<AddressUse> total = nullptr)
      : policy_(std::move(policy)), total_(std::move(total)) {}

  // True, and it has a connection more until leave() is called.
  [[nodiscard]] bool may_connect(SocketTime now);
  void leave();
  [[nodiscard]] bool may_send(std::size_t messages, std::size_t bytes, SocketTime now);
  [[nodiscard]] bool may_make_agent(SocketTime now);
  // Nothing would be different without this object.
  [[nodiscard]] bool is_unused(SocketTime now) const;

 private:
  [[nodiscard]] bool refused(AddressLimit limit) const {
    policy_->note(limit);
    return false;
  }

  std::shared_ptr<const AddressPolicy> policy_;
  std::shared_ptr<AddressUse> total_;  // shared with the other addresses; none: it is the total
  std::atomic<std::uint32_t> connections_ = 0;
  Rate new_connections_;
  Rate messages_;
  Rate bytes_;
  Rate new_agents_;
};

// A connection's part in the use of its address: it is one of its connections for as long as the
// object lives.
//
// Threads   Any.
// Lifetime  Within that of the HttpServer.
class ClientAddress {
 public:
  // After may_connect() has said yes.
  explicit ClientAddress(std::shared_ptr<AddressUse> use) : use_(std::move(use)) {}
  ~ClientAddress() { use_->leave(); }
  ClientAddress(const ClientAddress&) = delete;
  ClientAddress& operator=(const ClientAddress&) = delete;

  // So many messages or requests, and bytes; of either there may be none. False: the address, or
  // all together, have sent too much, which was counted and logged. So with the other.
  [[nodiscard]] bool may_send(std::size_t messages, std::size_t bytes) const;
  // An agent that does not exist yet.
  [[nodiscard]] bool may_make_agent() const;

 private:
  const std::shared_ptr<AddressUse> use_;  // shared with the table and the address's connections
};

}  // namespace hearth::net
