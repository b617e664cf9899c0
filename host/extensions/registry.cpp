#include "extensions/registry.hpp"

#include "extensions/alarms.hpp"
#include "extensions/basics.hpp"
#include "extensions/call.hpp"
#include "extensions/connections.hpp"
#include "extensions/fetch.hpp"
#include "extensions/fibers.hpp"
#include "extensions/keep_alive.hpp"
#include "extensions/kv.hpp"
#include "extensions/operations.hpp"
#include "extensions/queue.hpp"
#include "extensions/schedule.hpp"
#include "extensions/sql.hpp"
#include "extensions/state.hpp"
#include "extensions/watched_functions.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <type_traits>

namespace hearth::extensions {
namespace {

template <auto kTable, class... Entries>
constexpr auto make_watched() {
  auto table = std::remove_cvref_t<decltype(*kTable)>();
  static_assert(sizeof...(Entries) * sizeof(void*) == sizeof(table), "each function is watched");
  watch<[](const hearth_host*) { return kTable; }, Entries...>(table);
  return table;
}

template <auto kTable, class... Entries>
constexpr auto kWatchedTable = make_watched<kTable, Entries...>();

template <auto kTable, class... Entries>
constexpr Registered registered(std::string_view id) {
  return {id, kTable, &kWatchedTable<kTable, Entries...>};
}

// The function of this name in the extension's table.
#define HEARTH_WATCHED(extension, function, ...) \
  Member<&hearth_##extension##_v1::function,     \
         "hearth." #extension "/1 " #function __VA_OPT__(, ) __VA_ARGS__>

constexpr auto kRegistered = std::to_array<Registered>({
    registered<&kAgentTable, HEARTH_WATCHED(agent, evict), HEARTH_WATCHED(agent, destroy),
               HEARTH_WATCHED(agent, waits_for_person)>(HEARTH_EXT_AGENT),
    registered<&kAlarmsTable, HEARTH_WATCHED(alarms, set), HEARTH_WATCHED(alarms, list),
               HEARTH_WATCHED(alarms, cancel)>(HEARTH_EXT_ALARMS),
    registered<&kAuditTable, HEARTH_WATCHED(audit, record)>(HEARTH_EXT_AUDIT),
    registered<&kCallTable, HEARTH_WATCHED(call, start), HEARTH_WATCHED(call, notify),
               HEARTH_WATCHED(call, caller), HEARTH_WATCHED(call, list),
               HEARTH_WATCHED(call, remove)>(HEARTH_EXT_CALL),
    registered<&kClockTable, HEARTH_WATCHED(clock, wall_ms, Tag::kAny),
               HEARTH_WATCHED(clock, steady_ns, Tag::kAny)>(HEARTH_EXT_CLOCK),
    registered<&kConnectionsTable, HEARTH_WATCHED(connections, next),
               HEARTH_WATCHED(connections, id), HEARTH_WATCHED(connections, target),
               HEARTH_WATCHED(connections, header), HEARTH_WATCHED(connections, add_tag),
               HEARTH_WATCHED(connections, tag), HEARTH_WATCHED(connections, flags),
               HEARTH_WATCHED(connections, set_flags), HEARTH_WATCHED(connections, attachment),
               HEARTH_WATCHED(connections, set_attachment), HEARTH_WATCHED(connections, send),
               HEARTH_WATCHED(connections, broadcast), HEARTH_WATCHED(connections, close),
               HEARTH_WATCHED(connections, claims), HEARTH_WATCHED(connections, request_claims)>(
        HEARTH_EXT_CONNECTIONS),
    registered<&kFetchTable, HEARTH_WATCHED(fetch, start)>(HEARTH_EXT_FETCH),
    registered<&kFibersTable, HEARTH_WATCHED(fibers, start), HEARTH_WATCHED(fibers, resume),
               HEARTH_WATCHED(fibers, stash), HEARTH_WATCHED(fibers, settle),
               HEARTH_WATCHED(fibers, inspect), HEARTH_WATCHED(fibers, list),
               HEARTH_WATCHED(fibers, cancel), HEARTH_WATCHED(fibers, resolve),
               HEARTH_WATCHED(fibers, revive), HEARTH_WATCHED(fibers, remove),
               HEARTH_WATCHED(fibers, once), HEARTH_WATCHED(fibers, works_for)>(HEARTH_EXT_FIBERS),
    registered<&kHttpTable, HEARTH_WATCHED(http, target), HEARTH_WATCHED(http, header),
               HEARTH_WATCHED(http, header_at), HEARTH_WATCHED(http, set_status),
               HEARTH_WATCHED(http, add_header), HEARTH_WATCHED(http, read_body)>(HEARTH_EXT_HTTP),
    registered<&kKeepAliveTable, HEARTH_WATCHED(keep_alive, acquire),
               HEARTH_WATCHED(keep_alive, release)>(HEARTH_EXT_KEEP_ALIVE),
    registered<&kKvTable, HEARTH_WATCHED(kv, get), HEARTH_WATCHED(kv, put),
               HEARTH_WATCHED(kv, remove), HEARTH_WATCHED(kv, list), HEARTH_WATCHED(kv, usage)>(
        HEARTH_EXT_KV),
    registered<&kLogTable, HEARTH_WATCHED(log, write, Tag::kAny)>(HEARTH_EXT_LOG),
    registered<&kOperationsTable, HEARTH_WATCHED(operations, begin),
               HEARTH_WATCHED(operations, settle), HEARTH_WATCHED(operations, inspect),
               HEARTH_WATCHED(operations, list), HEARTH_WATCHED(operations, resolve),
               HEARTH_WATCHED(operations, answer), HEARTH_WATCHED(operations, path),
               HEARTH_WATCHED(operations, drop_answer), HEARTH_WATCHED(operations, set_cost),
               HEARTH_WATCHED(operations, describe)>(HEARTH_EXT_OPERATIONS),
    registered<&kQueueTable, HEARTH_WATCHED(queue, push), HEARTH_WATCHED(queue, get),
               HEARTH_WATCHED(queue, list), HEARTH_WATCHED(queue, remove),
               HEARTH_WATCHED(queue, remove_all), HEARTH_WATCHED(queue, retry)>(HEARTH_EXT_QUEUE),
    registered<&kRandomTable, HEARTH_WATCHED(random, fill, Tag::kAny)>(HEARTH_EXT_RANDOM),
    registered<&kScheduleTable, HEARTH_WATCHED(schedule, create), HEARTH_WATCHED(schedule, get),
               HEARTH_WATCHED(schedule, list), HEARTH_WATCHED(schedule, cancel),
               HEARTH_WATCHED(schedule, pause), HEARTH_WATCHED(schedule, retry)>(
        HEARTH_EXT_SCHEDULE),
    registered<&kSqlTable, HEARTH_WATCHED(sql, prepare), HEARTH_WATCHED(sql, bind_null),
               HEARTH_WATCHED(sql, bind_int64), HEARTH_WATCHED(sql, bind_double),
               HEARTH_WATCHED(sql, bind_text), HEARTH_WATCHED(sql, bind_blob),
               HEARTH_WATCHED(sql, step), HEARTH_WATCHED(sql, column_count),
               HEARTH_WATCHED(sql, column_name), HEARTH_WATCHED(sql, column_type),
               HEARTH_WATCHED(sql, column_int64), HEARTH_WATCHED(sql, column_double),
               HEARTH_WATCHED(sql, column_bytes), HEARTH_WATCHED(sql, reset),
               HEARTH_WATCHED(sql, finalize), HEARTH_WATCHED(sql, changes),
               HEARTH_WATCHED(sql, last_insert_rowid), HEARTH_WATCHED(sql, begin_savepoint),
               HEARTH_WATCHED(sql, release_savepoint), HEARTH_WATCHED(sql, rollback_savepoint)>(
        HEARTH_EXT_SQL),
    registered<&kStateTable, HEARTH_WATCHED(state, get), HEARTH_WATCHED(state, set),
               HEARTH_WATCHED(state, set_default), HEARTH_WATCHED(state, unset)>(HEARTH_EXT_STATE),
    registered<&kSubAgentsTable, HEARTH_WATCHED(subagents, list),
               HEARTH_WATCHED(subagents, destroy), HEARTH_WATCHED(subagents, path)>(
        HEARTH_EXT_SUBAGENTS),
});

}  // namespace

std::span<const Registered> registered_extensions() noexcept {
  return kRegistered;
}

const Registered* find_extension(std::string_view id) noexcept {
  const auto found = std::ranges::find(kRegistered, id, &Registered::id);
  return found == kRegistered.end() ? nullptr : &*found;
}

std::string_view name_of_extension(const char* id) noexcept {
  // Longer than any known name. The search for the end of an unterminated name stops here.
  constexpr std::size_t kMaxIdBytes = 64;
  return id == nullptr ? std::string_view() : std::string_view(id, ::strnlen(id, kMaxIdBytes));
}

}  // namespace hearth::extensions
