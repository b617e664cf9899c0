#pragma once
// Counts clients that the server dropped, by reason.

#include "telemetry/metrics.hpp"

#include <array>
#include <cstddef>
#include <string_view>

namespace hearth::net {

enum class DropReason {
  kSendQueue,    // more than NetOptions::send_queue waited for the client
  kReadsSlowly,  // the client read slower than NetOptions::min_rate
  kSendsSlowly,  // the client sent a body or a message slower than NetOptions::min_rate
  kSilent,       // the client did not answer a ping, or did not send a request's head in time
  kMemory,       // client memory was above its limit
  kConnections,  // there were too many connections
  kHandshake,    // the TLS handshake failed
};

// The name of a reason, for logs and as the metric's label: "send_queue".
[[nodiscard]] std::string_view name_of(DropReason reason);

// The counter hearth_clients_dropped_total{reason}.
//
// Threads   Any.
// Lifetime  The Metrics outlive it.
class DropCounts {
 public:
  explicit DropCounts(Metrics& metrics);
  void add(DropReason reason) { counters_[static_cast<std::size_t>(reason)]->add(); }

 private:
  static constexpr std::size_t kReasons = static_cast<std::size_t>(DropReason::kHandshake) + 1;
  std::array<Counter*, kReasons> counters_{};  // never null; the metrics own them
};

}  // namespace hearth::net
