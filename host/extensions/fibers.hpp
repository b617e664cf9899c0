#pragma once
// hearth.fibers/1: the host's side.

#include "durable/fibers.hpp"
#include "extensions/agent_context.hpp"
#include "extensions/durable_work.hpp"

#include <hearth/ext/fibers.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace hearth::extensions {

// The agent's code uses its fibers through this class.
//
// Threads, Failure  As AgentContext. Errors are those of durable::Fibers; also kInvalidArgument and
//                   kClosing as AgentContext::work_refusal().
// Durable           start() and stash() commit before they return; the others commit with the turn.
class FiberExtension {
 public:
  explicit FiberExtension(AgentContext& agent) : agent_(agent) {}

  Result<durable::Fibers::Started> start(std::string_view name, std::string_view replaces);
  Result<void> stash(std::uint64_t fiber, std::string_view json);
  Result<void> finish(std::uint64_t fiber);
  // As finish(), for work that has failed. `why` may be any bytes.
  Result<void> fail(std::uint64_t fiber, std::string_view why);
  Result<void> retry(std::string_view id);
  // A JSON array, as hearth/ext/fibers.h has it.
  Result<std::string> list_dead(std::string_view after, std::size_t limit);

 private:
  Result<void> end(std::uint64_t fiber, DurableEvent how, std::string_view why);

  AgentContext& agent_;
};

[[nodiscard]] const hearth_fibers_v1& fibers_extension() noexcept;

}  // namespace hearth::extensions
