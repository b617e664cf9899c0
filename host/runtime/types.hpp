#pragma once
// The names of the runtime that it shares with the extensions.

#include "extensions/types.hpp"

namespace hearth::runtime {

using extensions::AgentHandle;
using extensions::CallId;
using extensions::ConnectionId;
using extensions::EventKind;
using extensions::EvictReason;
using extensions::find_header;
using extensions::FrameKind;
using extensions::Headers;
using extensions::OperationId;
using extensions::ResponseHead;
using extensions::rule_of;
using extensions::to_string;

}  // namespace hearth::runtime
