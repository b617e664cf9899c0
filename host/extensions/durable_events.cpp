#include "extensions/durable_events.hpp"

#include "extensions/agent_context.hpp"

#include <vector>

namespace hearth::extensions {

void DurableLog::report(DurableEvent event, const LineOrigin& whose, std::string_view id,
                        std::string_view detail) {
  const DurableEventTraits& traits = traits_of(event);
  if (is_logged(event)) {
    std::vector<LogField> fields = agent_line(whose, {{traits.subject, id}, {"detail", detail}});
    std::erase_if(fields, [&](const LogField& field) {
      return (field.key == "detail" && detail.empty()) ||
             (field.key == traits.subject && (id.empty() || traits.subject.empty()));
    });
    logger_.write_limited(traits.level, traits.name, {whose.agent_class}, fields,
                          Logger::kWorkLimit);
  }
  if (event == DurableEvent::kAlarmDead) {
    (void)logger_.record_limited(
        LogLevel::kDebug, "alarm.failed", {whose.agent_class},
        {{"class", whose.agent_class}, {"agent", whose.agent}, {"alarm", id}, {"error", detail}},
        kAuditLimit);
  }
}

}  // namespace hearth::extensions
