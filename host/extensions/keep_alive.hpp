#pragma once
// hearth.keep_alive/1: the host's side.

#include "extensions/agent_context.hpp"

#include <hearth/ext/keep_alive.h>

#include <cstddef>

namespace hearth::extensions {

// The references by which an agent stays in memory.
//
// Threads  As AgentContext.
class KeepAliveExtension final : public AgentExtension {
 public:
  explicit KeepAliveExtension(AgentContext& agent) : agent_(agent) {}

  // kClosing; kLimitExceeded: the agent holds a million references, which must be a leak.
  Result<void> acquire();
  // kInvalidArgument: the agent holds none.
  Result<void> release();
  [[nodiscard]] std::size_t held() const { return held_; }
  [[nodiscard]] bool keeps_alive() const override { return held_ > 0; }

 private:
  AgentContext& agent_;
  std::size_t held_ = 0;
};

extern const hearth_keep_alive_v1 kKeepAliveTable;

}  // namespace hearth::extensions
