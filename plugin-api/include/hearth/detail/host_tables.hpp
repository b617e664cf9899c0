#pragma once
// The tables of one host, looked up once, and the conversions between slices and C++.

#include <hearth/abi.h>
#include <hearth/error.hpp>
#include <hearth/ext/agent.h>
#include <hearth/ext/alarms.h>
#include <hearth/ext/audit.h>
#include <hearth/ext/call.h>
#include <hearth/ext/clock.h>
#include <hearth/ext/connections.h>
#include <hearth/ext/fetch.h>
#include <hearth/ext/fibers.h>
#include <hearth/ext/http.h>
#include <hearth/ext/keep_alive.h>
#include <hearth/ext/kv.h>
#include <hearth/ext/log.h>
#include <hearth/ext/offload.h>
#include <hearth/ext/operations.h>
#include <hearth/ext/queue.h>
#include <hearth/ext/random.h>
#include <hearth/ext/schedule.h>
#include <hearth/ext/schema.h>
#include <hearth/ext/sleep.h>
#include <hearth/ext/sql.h>
#include <hearth/ext/state.h>
#include <hearth/ext/subagents.h>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace hearth::detail {

inline hearth_bytes slice(std::string_view text) noexcept {
  return {text.data(), text.size()};
}
inline hearth_bytes slice(std::span<const std::byte> bytes) noexcept {
  return {bytes.data(), bytes.size()};
}

// Borrowed: valid as long as the slice is.
std::string_view view(hearth_bytes bytes) noexcept;

// A missing extension of the host is null here; need() turns its use into a clear error.
struct HostTables {
  const hearth_host* host = nullptr;
  const hearth_agent_v1* agent = nullptr;
  const hearth_alarms_v1* alarms = nullptr;
  const hearth_audit_v1* audit = nullptr;
  const hearth_call_v1* call = nullptr;
  const hearth_clock_v1* clock = nullptr;
  const hearth_connections_v1* connections = nullptr;
  const hearth_fetch_v1* fetch = nullptr;
  const hearth_fibers_v1* fibers = nullptr;
  const hearth_http_v1* http = nullptr;
  const hearth_keep_alive_v1* keep_alive = nullptr;
  const hearth_kv_v1* kv = nullptr;
  const hearth_log_v1* log = nullptr;
  const hearth_operations_v1* operations = nullptr;
  const hearth_queue_v1* queue = nullptr;
  const hearth_random_v1* random = nullptr;
  const hearth_schedule_v1* schedule = nullptr;
  const hearth_sql_v1* sql = nullptr;
  const hearth_state_v1* state = nullptr;
  const hearth_subagents_v1* sub_agents = nullptr;

  void look_up(const hearth_host* from) noexcept;

 private:
  template <class Table>
  void find(const Table*& table, const char* id) noexcept {
    table = static_cast<const Table*>(host->get_extension(host, id));
  }
};

template <class Table>
const Table& need(const Table* table, const char* id) {
  if (!table) throw HostError(HEARTH_E_UNSUPPORTED, std::string("this server has no ") + id);
  return *table;
}

// Filled by init() for the library's own host, before any agent exists, and constant until
// deinit(). One for each loaded library: the version script keeps it from being shared with another
// generation of the same code.
inline HostTables library_tables;

}  // namespace hearth::detail
