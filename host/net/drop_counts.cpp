#include "net/drop_counts.hpp"

#include <string>

namespace hearth::net {

std::string_view name_of(DropReason reason) {
  switch (reason) {
    case DropReason::kSendQueue: return "send_queue";
    case DropReason::kReadsSlowly: return "reads_slowly";
    case DropReason::kSendsSlowly: return "sends_slowly";
    case DropReason::kSilent: return "silent";
    case DropReason::kMemory: return "memory";
    case DropReason::kConnections: return "connections";
    case DropReason::kHandshake: return "handshake";
  }
  return "unknown";
}

DropCounts::DropCounts(Metrics& metrics) {
  for (std::size_t i = 0; i < kReasons; ++i) {
    counters_[i] =
        &metrics.counter("hearth_clients_dropped_total", "Clients that the server gave up.",
                         {{"reason", std::string(name_of(static_cast<DropReason>(i)))}});
  }
}

}  // namespace hearth::net
