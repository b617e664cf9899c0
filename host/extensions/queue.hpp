#pragma once
// hearth.queue/1: the host's side.

#include "durable/queue.hpp"
#include "extensions/agent_context.hpp"

#include <hearth/ext/queue.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace hearth::extensions {

// The agent's code uses its queue through this class. Records are JSON: see hearth/ext/queue.h.
//
// Threads, Failure  As AgentContext. Errors are those of durable::Queue; also kInvalidArgument and
//                   kClosing as AgentContext::work_refusal().
// Durable           With the running turn.
class QueueExtension {
 public:
  explicit QueueExtension(AgentContext& agent) : agent_(agent) {}

  Result<std::string> push(const durable::QueueRequest& request);
  Result<std::string> get(std::string_view id);
  Result<std::string> list(const durable::QueueFilter& filter);
  Result<void> remove(std::string_view id);
  Result<std::uint64_t> remove_all(const durable::QueueFilter& filter);
  Result<void> retry(std::string_view id);

 private:
  AgentContext& agent_;
};

[[nodiscard]] const hearth_queue_v1& queue_extension() noexcept;

}  // namespace hearth::extensions
