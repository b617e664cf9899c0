#pragma once
// The tables of the extensions that keep no data of an agent.

#include <hearth/ext/agent.h>
#include <hearth/ext/audit.h>
#include <hearth/ext/clock.h>
#include <hearth/ext/http.h>
#include <hearth/ext/log.h>
#include <hearth/ext/random.h>
#include <hearth/ext/subagents.h>

namespace hearth::extensions {

extern const hearth_agent_v1 kAgentTable;
extern const hearth_audit_v1 kAuditTable;  // AgentContext::audit() takes the entries
extern const hearth_clock_v1 kClockTable;
extern const hearth_http_v1 kHttpTable;  // over CallPort::request()
extern const hearth_log_v1 kLogTable;
extern const hearth_random_v1 kRandomTable;
extern const hearth_subagents_v1 kSubAgentsTable;  // over sub_agents_port.hpp

}  // namespace hearth::extensions
