#include "runtime/agent_place.hpp"

#include "extensions/agent_line.hpp"

namespace hearth::runtime {

std::shared_ptr<const ServedClass> AgentPlace::served() const {
  const Resident* const resident = life.resident();
  return resident != nullptr ? resident->served : services.classes.find(segment);
}

void AgentPlace::forget(ConnectionId id) {
  if (LiveAgent* agent = life.live()) agent->in_progress().forget_connection(id);
  inbox.forget(id);
  look_at_unused();
}

void AgentPlace::write_failure(std::string_view line, const Error& failure, CallId call,
                               const extensions::Span& span) const {
  const std::string trace = span.text();
  services.logger.write_limited(
      LogLevel::kWarn, line, {key.agent_class, to_string(failure.code)},
      extensions::agent_line(
          {.agent_class = key.agent_class, .agent = key.name, .call = call, .trace = trace},
          {{"error", failure.message}}));
}

}  // namespace hearth::runtime
