// The schema version of an agent's data, and its migration to the version of its class. See
// hearth/ext/schema.h.
#include "runtime/live_agent.hpp"
#include "runtime/shard_services.hpp"

namespace hearth::runtime {

Result<void> LiveAgent::check_schema() const {
  const std::uint32_t stored = database_.class_schema();
  const std::uint32_t known = class_->schema_version();
  if (stored <= known) return {};
  const std::string what =
      known == 0 ? std::string("has none") : "knows only " + std::to_string(known);
  return Error{Errc::kUnavailable, "the agent's data has schema version " + std::to_string(stored) +
                                       ", but this version of the class " + what};
}

bool LiveAgent::must_migrate() const {
  // The first write gives a new agent the class's version.
  return database_.exists() && database_.class_schema() < class_->schema_version();
}

void LiveAgent::deliver_migrate(const Span& cause) {
  phase_ = AgentPhase::kMigrating;
  const std::string body = "{\"from\":" + std::to_string(database_.class_schema()) +
                           ",\"to\":" + std::to_string(class_->schema_version()) + "}";
  AgentEvent event;
  event.kind = EventKind::kMigrate;
  event.body = body;
  deliver_own(event, spans().below(cause), services_.limits.start_timeout);
}

Result<void> LiveAgent::migrated(const Completion& ended) {
  const std::optional<Error>& failure = ended.error;
  if (broken_) return Error{Errc::kInternal, "the agent's storage failed"};
  const std::uint32_t from = database_.class_schema();
  const std::uint32_t to = class_->schema_version();
  const bool ignored = failure && failure->code == Errc::kUnsupported;
  // Data without a version may need no migration. Between two versions a migration is required.
  if (failure && !(ignored && from == 0)) {
    const std::string why = ignored ? "the class does not say how" : failure->message;
    return Error{ignored ? Errc::kPlugin : failure->code,
                 "the agent's data could not be brought from schema version " +
                     std::to_string(from) + " to " + std::to_string(to) + ": " + why};
  }
  database_.store_class_schema(to);
  phase_ = AgentPhase::kStarting;
  flush();
  if (broken_) return Error{Errc::kInternal, "the agent's storage failed"};
  const std::string trace = ended.span.text();
  services_.logger.write_limited(
      LogLevel::kInfo, "agent.migrated", {class_->name()},
      extensions::agent_line({.agent_class = class_->name(),
                              .agent = parts_.key.name,
                              .call = ended.call,
                              .trace = trace},
                             {{"from", std::to_string(from)}, {"to", std::to_string(to)}}));
  deliver_start(ended.span);
  return {};
}

}  // namespace hearth::runtime
