#include "runtime/durable_counts.hpp"

#include <bit>
#include <cstddef>
#include <cstdint>

namespace hearth::runtime {

DurableCounts::Counters& DurableCounts::counters_of(std::string_view agent_class) {
  auto found = counters_.find(agent_class);
  if (found == counters_.end()) {
    found = counters_.emplace(std::string(agent_class), Counters{}).first;
    // All series at once: a series that begins at zero shows its first step as an increase.
    for (std::size_t place = 0; place < extensions::kDurableEventCount; ++place) {
      found->second[place] = &metrics_.counter(
          "hearth_durable_events_total", "Steps of fibers, schedules, queue items and alarms.",
          {{"class", std::string(agent_class)},
           {"event", std::string(extensions::kDurableEvents[place].name)}});
    }
  }
  return found->second;
}

void DurableCounts::report(extensions::DurableEvent event, const extensions::LineOrigin& whose,
                           std::string_view id, std::string_view detail) {
  counters_of(whose.agent_class)[static_cast<std::size_t>(event)]->add();
  DurableLog::report(event, whose, id, detail);
}

// Only kinds that are listed, and "" for each class: code cannot make up labels.
DurableCounts::StateCounters& DurableCounts::counters_of_kind(std::string_view agent_class,
                                                              std::string_view kind) {
  std::string place = std::string(agent_class) + '\n' + std::string(kind);
  if (const auto found = of_kinds_.find(place); found != of_kinds_.end()) return found->second;
  if (!kind.empty() && !(lists_kind_ && lists_kind_(agent_class, kind)))
    return counters_of_kind(agent_class, {});
  StateCounters& counters = of_kinds_[std::move(place)];
  for (std::size_t state = 0; state < kStates; ++state) {
    counters[state] = &metrics_.counter(
        "hearth_operations_total", "Operations that began to run, and what became of them.",
        {{"class", std::string(agent_class)},
         {"kind", std::string(kind)},
         {"state",
          std::string(durable::to_string(static_cast<durable::OperationState>(1U << state)))}});
  }
  return counters;
}

void DurableCounts::operation_changed(std::string_view agent_class, std::string_view kind,
                                      durable::OperationState state) {
  const auto place = static_cast<std::size_t>(std::countr_zero(static_cast<std::uint32_t>(state)));
  counters_of_kind(agent_class, kind)[place]->add();
}

}  // namespace hearth::runtime
