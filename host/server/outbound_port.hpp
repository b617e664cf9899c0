#pragma once
// How the agents of a server reach other servers: net::OutboundHttp with the limits of their
// classes.

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/logger.hpp"
#include "config/config.hpp"
#include "extensions/http_port.hpp"
#include "net/outbound_http.hpp"
#include "runtime/asio_loop.hpp"
#include "runtime/shard_loop.hpp"
#include "server/egress_budget.hpp"
#include "server/span_exporter.hpp"
#include "telemetry/metrics.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace hearth::server {

// Requests of one shard's agents.
//
// Secrets   An answer that repeats the key of the request has '*' in its place (SecretMask).
// Limits    A request after a redirect counts like the first one.
// Metrics   hearth_fetch_requests_total{class,outcome}: answered, failed, cancelled, or refused by
//           rules or limits; hearth_fetch_in_flight{class};
//           hearth_fetch_bytes_total{class,direction} for bodies.
// Log       fetch.refused and fetch.failed, with the agent, its call and trace, limited for each
//           class and reason. No URLs: queries may hold secrets. Only the host that the rules
//           refuse, also that of a redirect.
// Threads   The shard's.
// Lifetime  Its parts outlive it. It outlives its operations.
class OutboundPort final : public extensions::HttpPort {
 public:
  using StartRequest = std::function<Result<std::unique_ptr<net::OutboundExchange>>(
      net::OutboundRequest request, net::OutboundListener& listener)>;
  struct Parts {
    runtime::ShardLoop& loop;
    StartRequest start;  // of an OutboundHttp of that loop
    EgressBudget& budget;
    Metrics& metrics;
    Logger& logger;
  };
  explicit OutboundPort(Parts parts) : parts_(std::move(parts)) {}

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

// Rules for requests of the server itself. The operator chooses their URLs: a name may lead to any
// address, also inside the own network.
[[nodiscard]] std::shared_ptr<const EgressRules> everywhere();

// An HTTP client and a port for each loop, the limits that all share, and the exporter of spans.
//
// Threads    The thread that makes it, while the loops do not run; ports as they say.
// Lifetime   It outlives the runtime. The loops and its arguments outlive it.
class WaysOut {
 public:
  // `file`: the record of used limits.
  // Failure  A sentence for the operator: the record or the file of authorities cannot be read.
  static Result<std::unique_ptr<WaysOut>> open(
      const std::filesystem::path& file, const config::ServerConfig& settings,
      std::span<const std::unique_ptr<runtime::AsioLoop>> loops, const Clock& clock, Random& random,
      Metrics& metrics, Logger& logger);

  [[nodiscard]] extensions::HttpPort* port(unsigned shard) { return ports_[shard].get(); }
  // For requests of the server itself, which count for no class.
  [[nodiscard]] net::OutboundHttp& http(unsigned shard) { return *clients_[shard]; }
  // Null: there is no collector.
  [[nodiscard]] extensions::SpanLog* span_log() { return exporter_ ? &exporter_->log() : nullptr; }
  // Call it after the loops have stopped: then agents send no more requests.
  void stop() {
    budget_.stop();
    if (exporter_) exporter_->stop();
  }

 private:
  WaysOut(const std::filesystem::path& file, const Clock& clock, Logger& logger)
      : budget_(file, clock, logger) {}

  EgressBudget budget_;
  std::vector<std::unique_ptr<net::OutboundHttp>> clients_;
  std::vector<std::unique_ptr<OutboundPort>> ports_;
  std::unique_ptr<SpanExporter> exporter_;  // null: there is no collector
};

}  // namespace hearth::server
