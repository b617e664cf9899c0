#pragma once
// Clients that the network gave up, by reason.

#include "telemetry/metrics.hpp"

#include <array>
#include <cstddef>
#include <string_view>

namespace hearth::net {

enum class DropReason {
  kSendQueue,    // more than NetOptions::send_queue waited for it
  kReadsSlowly,  // it took less than NetOptions::min_rate
  kSendsSlowly,  // its request's body or its message came at less than that
  kSilent,       // it did not answer a ping, or sent no request's head in time
  kMemory,       // the account of client memory was overdrawn
  kConnections,  // it was one connection too many, and was told so
  kHandshake,    // it did not speak TLS as the server does
};

// The name of a reason, for logs and as the metric's label: "send_queue".
[[nodiscard]] std::string_view name_of(DropReason reason);

// The counter hearth_clients_dropped_total{reason}, as one loop counts it.
//
// Threads   Any.
// Lifetime  Within that of the Metrics.
class DropCounts {
 public:
  explicit DropCounts(Metrics& metrics);
  void add(DropReason reason) { counters_[static_cast<std::size_t>(reason)]->add(); }

 private:
  static constexpr std::size_t kReasons = static_cast<std::size_t>(DropReason::kHandshake) + 1;
  std::array<Counter*, kReasons> counters_{};  // never null; the metrics own them
};

}  // namespace hearth::net
