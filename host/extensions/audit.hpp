#pragma once
// hearth.audit/1: the host's side. Where entries go is for whoever runs the agent to say
// (AgentContext::audit()).

#include <hearth/ext/audit.h>

namespace hearth::extensions {

[[nodiscard]] const hearth_audit_v1& audit_extension() noexcept;

}  // namespace hearth::extensions
