#include <hearth/detail/host_tables.hpp>

namespace hearth::detail {

std::string_view view(hearth_bytes bytes) noexcept {
  return bytes.len == 0 ? std::string_view()
                        : std::string_view(static_cast<const char*>(bytes.ptr), bytes.len);
}

void HostTables::look_up(const hearth_host* from) noexcept {
  host = from;
  find(agent, HEARTH_EXT_AGENT);
  find(alarms, HEARTH_EXT_ALARMS);
  find(audit, HEARTH_EXT_AUDIT);
  find(call, HEARTH_EXT_CALL);
  find(clock, HEARTH_EXT_CLOCK);
  find(connections, HEARTH_EXT_CONNECTIONS);
  find(fetch, HEARTH_EXT_FETCH);
  find(fibers, HEARTH_EXT_FIBERS);
  find(http, HEARTH_EXT_HTTP);
  find(keep_alive, HEARTH_EXT_KEEP_ALIVE);
  find(kv, HEARTH_EXT_KV);
  find(log, HEARTH_EXT_LOG);
  find(operations, HEARTH_EXT_OPERATIONS);
  find(queue, HEARTH_EXT_QUEUE);
  find(random, HEARTH_EXT_RANDOM);
  find(schedule, HEARTH_EXT_SCHEDULE);
  find(sql, HEARTH_EXT_SQL);
  find(state, HEARTH_EXT_STATE);
  find(sub_agents, HEARTH_EXT_SUBAGENTS);
}

}  // namespace hearth::detail
