#pragma once
// hearth.keep_alive/1: the host's side.

#include "extensions/agent_context.hpp"

#include <hearth/ext/keep_alive.h>

#include <cstddef>

namespace hearth::extensions {

// The references with which an agent keeps itself in memory.
//
// Threads  As AgentContext.
class KeepAliveExtension final : public AgentExtension {
 public:
  explicit KeepAliveExtension(AgentContext& agent) : agent_(agent) {}

  // kClosing; kLimitExceeded: more than anybody can mean.
  Result<void> acquire();
  // kInvalidArgument: none is held.
  Result<void> release();
  [[nodiscard]] std::size_t held() const { return held_; }
  [[nodiscard]] bool keeps_alive() const override { return held_ > 0; }

 private:
  AgentContext& agent_;
  std::size_t held_ = 0;
};

[[nodiscard]] const hearth_keep_alive_v1& keep_alive_extension() noexcept;

}  // namespace hearth::extensions
