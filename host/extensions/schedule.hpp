#pragma once
// hearth.schedule/1: the host's side.

#include "durable/schedules.hpp"
#include "extensions/agent_context.hpp"

#include <hearth/ext/schedule.h>

#include <string>
#include <string_view>

namespace hearth::extensions {

// The agent's code uses its schedules through this class. Records are JSON: see
// hearth/ext/schedule.h.
//
// Threads, Failure  As AgentContext. Errors are those of durable::Schedules; also kInvalidArgument
//                   and kClosing as AgentContext::work_refusal().
// Durable           With the running turn.
class ScheduleExtension {
 public:
  explicit ScheduleExtension(AgentContext& agent) : agent_(agent) {}

  Result<durable::Schedules::Created> create(const durable::ScheduleRequest& request);
  Result<std::string> get(std::string_view id);
  Result<std::string> list(const durable::ScheduleFilter& filter);
  Result<void> cancel(std::string_view id);
  Result<void> pause(std::string_view id, bool paused);
  Result<void> retry(std::string_view id);

 private:
  AgentContext& agent_;
};

[[nodiscard]] const hearth_schedule_v1& schedule_extension() noexcept;

}  // namespace hearth::extensions
