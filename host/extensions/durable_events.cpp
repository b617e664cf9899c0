#include "extensions/durable_events.hpp"

#include <array>
#include <span>

namespace hearth::extensions {

DurableEvents::Counters& DurableEvents::counters_of(std::string_view agent_class) {
  auto found = counters_.find(agent_class);
  if (found == counters_.end()) {
    found = counters_.emplace(std::string(agent_class), Counters{}).first;
    // All at once: a series that begins at zero shows its first step as an increase.
    for (std::size_t place = 0; place < kDurableEventCount; ++place) {
      found->second[place] = &metrics_.counter(
          "hearth_durable_events_total", "Steps of fibers, schedules, queue items and alarms.",
          {{"class", std::string(agent_class)},
           {"event", std::string(kDurableEvents[place].name)}});
    }
  }
  return found->second;
}

void DurableEvents::report(DurableEvent event, std::string_view agent_class, std::string_view agent,
                           std::string_view id, std::string_view detail) {
  counters_of(agent_class)[static_cast<std::size_t>(event)]->add();
  const DurableEventTraits& traits = traits_of(event);
  if (!logger_.enabled(traits.level)) return;
  std::array<LogField, 4> fields = {LogField{"class", agent_class}, LogField{"agent", agent},
                                    LogField{traits.subject, id}, LogField{"detail", detail}};
  std::size_t used = 2;
  if (!id.empty() && !traits.subject.empty()) ++used;
  if (!detail.empty()) fields[used++] = LogField{"detail", detail};
  logger_.write_limited(traits.level, traits.name, {agent_class},
                        std::span<const LogField>(fields).first(used), Logger::kWorkLimit);
}

}  // namespace hearth::extensions
