#pragma once
// hearth.subagents/1: the host's side. What it knows is in the directory of agents
// (sub_agents_port.hpp), and clients are asked about by whoever lets them in.

#include <hearth/ext/subagents.h>

namespace hearth::extensions {

[[nodiscard]] const hearth_subagents_v1& subagents_extension() noexcept;

}  // namespace hearth::extensions
