#pragma once
// The steps of durable work, counted.

#include "base/logger.hpp"
#include "extensions/durable_events.hpp"
#include "telemetry/metrics.hpp"

#include <array>
#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace hearth::runtime {

// Promises   Each report is logged, and adds one to hearth_durable_events_total{class,event},
//            whatever the log's level. Labels are classes and kDurableEvents only.
// Threads, Lifetime  As DurableLog; the metrics outlive it.
class DurableCounts final : public extensions::DurableLog {
 public:
  DurableCounts(Logger& logger, Metrics& metrics) : DurableLog(logger), metrics_(metrics) {}

  void report(extensions::DurableEvent event, std::string_view agent_class, std::string_view agent,
              std::string_view id, std::string_view detail) override;

 private:
  using Counters = std::array<Counter*, extensions::kDurableEventCount>;
  Counters& counters_of(std::string_view agent_class);

  Metrics& metrics_;
  std::map<std::string, Counters, std::less<>> counters_;  // by class
};

}  // namespace hearth::runtime
