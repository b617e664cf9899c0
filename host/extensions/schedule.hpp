#pragma once
// hearth.schedule/1: the host's side.

#include "durable/schedules.hpp"
#include "extensions/agent_context.hpp"

#include <hearth/ext/schedule.h>

#include <string>
#include <string_view>

namespace hearth::extensions {

// The agent's code makes or cancels a schedule. Errors are those of durable::Schedules; also
// kInvalidArgument and kClosing as AgentContext::work_refusal().
//
// Threads, Failure  As AgentContext.  Durable  With the running turn.
[[nodiscard]] Result<durable::Schedules::Created> create_schedule(
    AgentContext& agent, const durable::ScheduleRequest& request);
Result<void> cancel_schedule(AgentContext& agent, std::string_view id);

extern const hearth_schedule_v1 kScheduleTable;

}  // namespace hearth::extensions
