#pragma once
// Counts the steps of durable work.

#include "base/logger.hpp"
#include "extensions/durable_events.hpp"
#include "telemetry/metrics.hpp"

#include <array>
#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace hearth::runtime {

// Promises   Each report is logged, and adds one to hearth_durable_events_total{class,event},
//            whatever the log's level. Labels are classes and kDurableEvents only.
//            Each change of an operation adds one to hearth_operations_total{class,kind,state}:
//            "running" when it begins to run, later its new state. `kind` is empty if the class
//            does not list the kind.
// Threads, Lifetime  As in DurableLog; the metrics outlive it.
class DurableCounts final : public extensions::DurableLog {
 public:
  // Whether a class, by its own name, lists this kind of operations.
  using ListsKind = std::function<bool(std::string_view agent_class, std::string_view kind)>;

  DurableCounts(Logger& logger, Metrics& metrics, ListsKind lists_kind = {})
      : DurableLog(logger), metrics_(metrics), lists_kind_(std::move(lists_kind)) {}

  void report(extensions::DurableEvent event, const extensions::LineOrigin& whose,
              std::string_view id, std::string_view detail) override;
  void operation_changed(std::string_view agent_class, std::string_view kind,
                         durable::OperationState state) override;

 private:
  static constexpr std::size_t kStates = 5;  // of operations
  using StateCounters = std::array<Counter*, kStates>;
  StateCounters& counters_of_kind(std::string_view agent_class, std::string_view kind);

  using Counters = std::array<Counter*, extensions::kDurableEventCount>;
  Counters& counters_of(std::string_view agent_class);

  Metrics& metrics_;
  const ListsKind lists_kind_;
  std::map<std::string, Counters, std::less<>> counters_;       // by class
  std::map<std::string, StateCounters, std::less<>> of_kinds_;  // by class, line feed and kind
};

}  // namespace hearth::runtime
