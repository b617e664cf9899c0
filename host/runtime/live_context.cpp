#include "runtime/live_context.hpp"

#include "runtime/agent_calls.hpp"
#include "runtime/agent_code.hpp"
#include "runtime/agent_store.hpp"
#include "runtime/class_registry.hpp"
#include "runtime/condemned_agents.hpp"
#include "runtime/shard_services.hpp"
#include "runtime/work_delivery.hpp"

#include <string>

namespace hearth::runtime {

using extensions::AgentPhase;

extensions::EgressPtr LiveContext::egress() const {
  return live_.services.classes.egress(live_.segment);
}

void LiveContext::commit_now() {
  live_.store.commit();
}

void LiveContext::fiber_continued(std::string_view id) {
  live_.work.continued(id);
  live_.look();  // another agent may wait for the permit
}

void LiveContext::works_for(durable::FiberHandle fiber, CallId call) {
  if (!live_.code.is_made()) return;  // the instance is being made, and no fiber runs
  live_.code.works_for(fiber != 0 ? WorkMark{work().fibers().runs().row_of(fiber)}
                                  : live_.code.work_of(call));
  live_.code.on_stack().go_on_under(live_.work.span_of_run(fiber));
}

Result<void> LiveContext::evict() {
  if (phase_ == AgentPhase::kClosing) return Error{Errc::kClosing, "the agent is being evicted"};
  if (wish_ == Wish::kStay) wish_ = Wish::kLeave;
  return {};
}

Result<void> LiveContext::destroy() {
  if (phase_ == AgentPhase::kClosing) return Error{Errc::kClosing, "the agent is being evicted"};
  if (wants_destruction()) return {};
  live_.services.condemned.condemn(key());
  live_.store.commits().directory_was_written(true);
  wish_ = Wish::kBeDestroyed;
  return {};
}

void LiveContext::log(LogLevel level, std::string_view text) {
  if (!live_.services.logger.enabled(level)) return;
  extensions::LineOrigin whose = live_.calls.current();
  const std::string trace = live_.calls.trace();
  whose.trace = trace;
  live_.services.logger.write_limited(
      level, "agent.log", {live_.agent_class.name()},
      extensions::agent_line(whose, {{"text", text.substr(0, 8192)}}), Logger::kWorkLimit);
}

Result<void> LiveContext::audit(std::string_view what, std::string_view detail) {
  // The limit is for the class, because its other agents run the same code.
  const bool is_added = live_.services.logger.record_limited(LogLevel::kDebug, "agent.audit",
                                                             {live_.agent_class.name()},
                                                             {{"class", live_.agent_class.name()},
                                                              {"agent", key().name},
                                                              {"actor", "agent"},
                                                              {"what", what},
                                                              {"detail", detail}},
                                                             extensions::kAuditLimit);
  if (is_added) return {};
  return Error{Errc::kLimitExceeded,
               "agents of this class have added too many entries to the audit log: a class may add "
               "10 a second"};
}

void LiveContext::storage_failed(std::string_view what) {
  live_.store.fail(what);
}

}  // namespace hearth::runtime
