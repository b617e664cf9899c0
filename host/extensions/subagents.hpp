#pragma once
// hearth.subagents/1: the host's side, over the directory of agents (sub_agents_port.hpp).
// Questions about clients come from the part of a host that lets clients in.

#include <hearth/ext/subagents.h>

namespace hearth::extensions {

[[nodiscard]] const hearth_subagents_v1& subagents_extension() noexcept;

}  // namespace hearth::extensions
