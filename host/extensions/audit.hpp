#pragma once
// hearth.audit/1: the host's side. AgentContext::audit() takes the entries: the server keeps them
// in its audit log, the mock host in a list.

#include <hearth/ext/audit.h>

namespace hearth::extensions {

[[nodiscard]] const hearth_audit_v1& audit_extension() noexcept;

}  // namespace hearth::extensions
