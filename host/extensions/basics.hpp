#pragma once
// hearth.agent/1, hearth.clock/1, hearth.log/1 and hearth.random/1: a few functions each, without
// data of an agent.

#include <hearth/ext/agent.h>
#include <hearth/ext/clock.h>
#include <hearth/ext/log.h>
#include <hearth/ext/random.h>

namespace hearth::extensions {

[[nodiscard]] const hearth_agent_v1& agent_extension() noexcept;
[[nodiscard]] const hearth_clock_v1& clock_extension() noexcept;
[[nodiscard]] const hearth_log_v1& log_extension() noexcept;
[[nodiscard]] const hearth_random_v1& random_extension() noexcept;

}  // namespace hearth::extensions
