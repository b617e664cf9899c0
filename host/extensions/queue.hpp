#pragma once
// hearth.queue/1: the host's side.

#include "durable/queue.hpp"
#include "extensions/agent_context.hpp"

#include <hearth/ext/queue.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace hearth::extensions {

// The agent's code adds an item. Gives its record, as hearth/ext/queue.h has it. Errors are those
// of durable::Queue::push(); also kInvalidArgument and kClosing as AgentContext::work_refusal().
//
// Threads, Failure  As AgentContext.  Durable  With the running turn.
[[nodiscard]] Result<std::string> push_item(AgentContext& agent,
                                            const durable::QueueRequest& request);

extern const hearth_queue_v1 kQueueTable;

}  // namespace hearth::extensions
