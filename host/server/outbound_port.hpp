#pragma once
// Requests of one shard's agents to other servers: net::OutboundHttp with the limits of their
// classes.

#include "base/logger.hpp"
#include "extensions/http_port.hpp"
#include "net/outbound_http.hpp"
#include "runtime/shard_loop.hpp"
#include "server/egress_budget.hpp"
#include "telemetry/metrics.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <string>

namespace hearth::server {

// Secrets   An answer that repeats the key of the request has '*' in its place (SecretMask).
// Limits    A request after a redirect counts like the first one.
// Metrics   hearth_fetch_requests_total{class,outcome}: answered, failed, cancelled, or refused by
//           rules or limits; hearth_fetch_in_flight{class};
//           hearth_fetch_bytes_total{class,direction} for bodies.
// Log       fetch.refused and fetch.failed, with the agent, its call and trace, limited for each
//           class and reason. No URLs: queries may hold secrets.
// Threads   The shard's.
// Lifetime  Its parts outlive it. It outlives its operations.
class OutboundPort final : public extensions::HttpPort {
 public:
  struct Parts {
    runtime::ShardLoop& loop;
    net::OutboundHttp& http;  // of that loop
    EgressBudget& budget;
    Metrics& metrics;
    Logger& logger;
  };
  explicit OutboundPort(const Parts& parts) : parts_(parts) {}

  Result<std::unique_ptr<extensions::RemoteOperation>> make(
      extensions::FetchRequest request) override;

 private:
  class Exchange;
  // The metrics of one class.
  struct Class {
    Class(Metrics& metrics, const std::string& name);

    Counter& answered;
    Counter& failed;
    Counter& refused;
    Counter& cancelled;
    Counter& sent_bytes;
    Counter& received_bytes;
    Gauge& in_flight;
  };

  [[nodiscard]] Class& of_class(const std::string& name);

  const Parts parts_;
  std::map<std::string, Class, std::less<>> classes_;
};

}  // namespace hearth::server
