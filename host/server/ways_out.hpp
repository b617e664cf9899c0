#pragma once
// How the agents of a server reach other servers: an HTTP client and a port for each loop, and the
// limits that all share.

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/logger.hpp"
#include "config/config.hpp"
#include "net/outbound_http.hpp"
#include "runtime/asio_loop.hpp"
#include "server/egress_budget.hpp"
#include "server/outbound_port.hpp"
#include "telemetry/metrics.hpp"

#include <filesystem>
#include <memory>
#include <span>
#include <vector>

namespace hearth::server {

// Threads    The thread that makes it, while the loops do not run; ports as they say.
// Lifetime   It outlives the runtime. The loops and its arguments outlive it.
class WaysOut {
 public:
  // `file`: the record of used limits.
  // Failure  A sentence for the operator: the record or the file of authorities cannot be read.
  static Result<std::unique_ptr<WaysOut>> open(
      const std::filesystem::path& file, const config::EgressConfig& settings,
      std::span<const std::unique_ptr<runtime::AsioLoop>> loops, const Clock& clock,
      Metrics& metrics, Logger& logger);

  [[nodiscard]] extensions::HttpPort* port(unsigned shard) { return ports_[shard].get(); }
  // For requests of the server itself, which count for no class.
  [[nodiscard]] net::OutboundHttp& http(unsigned shard) { return *clients_[shard]; }
  // Call it after the loops have stopped: then agents send no more requests.
  void stop() { budget_.stop(); }

 private:
  WaysOut(const std::filesystem::path& file, const Clock& clock, Logger& logger)
      : budget_(file, clock, logger) {}

  EgressBudget budget_;
  std::vector<std::unique_ptr<net::OutboundHttp>> clients_;
  std::vector<std::unique_ptr<OutboundPort>> ports_;
};

}  // namespace hearth::server
