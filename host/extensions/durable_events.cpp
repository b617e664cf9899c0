#include "extensions/durable_events.hpp"

#include <array>
#include <span>

namespace hearth::extensions {

void DurableLog::report(DurableEvent event, std::string_view agent_class, std::string_view agent,
                        std::string_view id, std::string_view detail) {
  const DurableEventTraits& traits = traits_of(event);
  std::array<LogField, 4> fields = {LogField{"class", agent_class}, LogField{"agent", agent},
                                    LogField{traits.subject, id}, LogField{"detail", detail}};
  std::size_t used = 2;
  if (!id.empty() && !traits.subject.empty()) ++used;
  if (!detail.empty()) fields[used++] = LogField{"detail", detail};
  logger_.write_limited(traits.level, traits.name, {agent_class},
                        std::span<const LogField>(fields).first(used), Logger::kWorkLimit);
  if (event == DurableEvent::kAlarmDead) {
    logger_.record(LogLevel::kDebug, "alarm.failed",
                   {{"class", agent_class}, {"agent", agent}, {"alarm", id}, {"error", detail}});
  }
}

}  // namespace hearth::extensions
