#include "extensions/registry.hpp"

#include "extensions/alarms.hpp"
#include "extensions/audit.hpp"
#include "extensions/basics.hpp"
#include "extensions/call.hpp"
#include "extensions/connections.hpp"
#include "extensions/fetch.hpp"
#include "extensions/fibers.hpp"
#include "extensions/http.hpp"
#include "extensions/keep_alive.hpp"
#include "extensions/kv.hpp"
#include "extensions/operations.hpp"
#include "extensions/queue.hpp"
#include "extensions/schedule.hpp"
#include "extensions/sql.hpp"
#include "extensions/state.hpp"
#include "extensions/subagents.hpp"

#include <algorithm>
#include <array>

namespace hearth::extensions {
namespace {

constexpr auto kRegistered = std::to_array<Registered>({
    {HEARTH_EXT_AGENT, []() -> const void* { return &agent_extension(); }},
    {HEARTH_EXT_ALARMS, []() -> const void* { return &alarms_extension(); }},
    {HEARTH_EXT_AUDIT, []() -> const void* { return &audit_extension(); }},
    {HEARTH_EXT_CALL, []() -> const void* { return &call_extension(); }},
    {HEARTH_EXT_CLOCK, []() -> const void* { return &clock_extension(); }},
    {HEARTH_EXT_CONNECTIONS, []() -> const void* { return &connections_extension(); }},
    {HEARTH_EXT_FETCH, []() -> const void* { return &fetch_extension(); }},
    {HEARTH_EXT_FIBERS, []() -> const void* { return &fibers_extension(); }},
    {HEARTH_EXT_HTTP, []() -> const void* { return &http_extension(); }},
    {HEARTH_EXT_KEEP_ALIVE, []() -> const void* { return &keep_alive_extension(); }},
    {HEARTH_EXT_KV, []() -> const void* { return &kv_extension(); }},
    {HEARTH_EXT_LOG, []() -> const void* { return &log_extension(); }},
    {HEARTH_EXT_OPERATIONS, []() -> const void* { return &operations_extension(); }},
    {HEARTH_EXT_QUEUE, []() -> const void* { return &queue_extension(); }},
    {HEARTH_EXT_RANDOM, []() -> const void* { return &random_extension(); }},
    {HEARTH_EXT_SCHEDULE, []() -> const void* { return &schedule_extension(); }},
    {HEARTH_EXT_SQL, []() -> const void* { return &sql_extension(); }},
    {HEARTH_EXT_STATE, []() -> const void* { return &state_extension(); }},
    {HEARTH_EXT_SUBAGENTS, []() -> const void* { return &subagents_extension(); }},
});

}  // namespace

std::span<const Registered> registered_extensions() noexcept {
  return kRegistered;
}

const void* find_extension(std::string_view id) noexcept {
  const auto found = std::ranges::find(kRegistered, id, &Registered::id);
  return found == kRegistered.end() ? nullptr : found->table();
}

}  // namespace hearth::extensions
