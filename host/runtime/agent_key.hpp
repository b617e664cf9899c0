#pragma once
// The name of an agent, for the layers above that do not know storage.

#include "storage/agent_key.hpp"

namespace hearth::runtime {

using storage::AgentKey;

}  // namespace hearth::runtime
