#include "runtime/durable_counts.hpp"

#include <cstddef>

namespace hearth::runtime {

DurableCounts::Counters& DurableCounts::counters_of(std::string_view agent_class) {
  auto found = counters_.find(agent_class);
  if (found == counters_.end()) {
    found = counters_.emplace(std::string(agent_class), Counters{}).first;
    // All at once: a series that begins at zero shows its first step as an increase.
    for (std::size_t place = 0; place < extensions::kDurableEventCount; ++place) {
      found->second[place] = &metrics_.counter(
          "hearth_durable_events_total", "Steps of fibers, schedules, queue items and alarms.",
          {{"class", std::string(agent_class)},
           {"event", std::string(extensions::kDurableEvents[place].name)}});
    }
  }
  return found->second;
}

void DurableCounts::report(extensions::DurableEvent event, std::string_view agent_class,
                           std::string_view agent, std::string_view id, std::string_view detail) {
  counters_of(agent_class)[static_cast<std::size_t>(event)]->add();
  DurableLog::report(event, agent_class, agent, id, detail);
}

}  // namespace hearth::runtime
