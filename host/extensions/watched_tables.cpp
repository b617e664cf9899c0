#include "extensions/watched_tables.hpp"

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
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace hearth::extensions {
namespace {

// A text as a template argument.
template <std::size_t kSize>
struct Name {
  consteval Name(const char (&given)[kSize]) {  // NOLINT(google-explicit-constructor)
    std::copy_n(given, kSize, text);
  }
  char text[kSize]{};
};

enum class Tag {
  kInstance,
  kClosing,    // [instance]; works while the agent is being destroyed
  kStatement,  // [instance]; its second argument is a statement
  kAny,
};

// One member of a table, with its name for messages.
template <auto kMember, Name kName, Tag kTag = Tag::kInstance>
struct Member {
  static constexpr auto kPointer = kMember;
  static constexpr AbiFunction kFunction{.name = std::string_view(kName.text),
                                         .any_thread = kTag == Tag::kAny,
                                         .while_closing = kTag == Tag::kClosing,
                                         .of_statement = kTag == Tag::kStatement};
};

AbiWatcher& watcher_of(const hearth_host* table) {
  const std::byte* const begin =
      reinterpret_cast<const std::byte*>(table) - offsetof(WatchedTable, host);
  return *reinterpret_cast<const WatchedTable*>(begin)->watcher;
}

// The first argument of a call is its agent, if the tag says that it has one; the second is the
// statement.
template <class... Rest>
AbiCall call_of(const AbiFunction& function, Rest... /*rest*/) {
  return {.function = function};
}
template <class... Rest>
AbiCall call_of(const AbiFunction& function, hearth_agent agent, Rest... /*rest*/) {
  return {.function = function, .agent = agent};
}
template <class... Rest>
AbiCall call_of(const AbiFunction& function, hearth_agent agent, std::uint64_t second,
                Rest... /*rest*/) {
  return {.function = function, .agent = agent, .statement = function.of_statement ? second : 0};
}

template <class Argument>
void tell_lent(AbiWatcher& watcher, const AbiCall& call, Argument argument) {
  if constexpr (std::same_as<Argument, hearth_bytes*>) watcher.lent(call, argument);
}

template <auto kReal, class Entry, class Pointer>
struct Watched;

// kReal gives the table of AbiWatcher::abi(), or of an extension. Entry names one member of it.
template <auto kReal, class Entry, class Table, class R, class... Arguments>
struct Watched<kReal, Entry, R (*Table::*)(const hearth_host*, Arguments...)> {
  static R call(const hearth_host* table, Arguments... arguments) {
    AbiWatcher& watcher = watcher_of(table);
    const AbiCall call = call_of(Entry::kFunction, arguments...);
    const hearth_host* const real = watcher.abi().table();
    const auto refused = watcher.enter(call);
    if constexpr (std::same_as<R, hearth_status>) {
      const R result = refused ? *refused : (kReal(real)->*Entry::kPointer)(real, arguments...);
      if (!refused && result >= 0) (tell_lent(watcher, call, arguments), ...);
      watcher.left(call);
      return result;
    } else if constexpr (std::is_void_v<R>) {
      (kReal(real)->*Entry::kPointer)(real, arguments...);
      watcher.left(call);
    } else {
      const R result = (kReal(real)->*Entry::kPointer)(real, arguments...);
      watcher.left(call);
      return result;
    }
  }
};

// A table with all members watched. Each member must be named here: a missing one is a compile
// error.
template <class Table, auto kTable, class... Entries>
constexpr Table watch() {
  static_assert(sizeof...(Entries) * sizeof(void*) == sizeof(Table), "each function is watched");
  constexpr auto kReal = [](const hearth_host*) -> const Table* { return &kTable(); };
  Table table{};
  ((table.*Entries::kPointer =
        &Watched<kReal, Entries, std::remove_const_t<decltype(Entries::kPointer)>>::call),
   ...);
  return table;
}

constexpr auto kWatchedAgent = watch<hearth_agent_v1, &agent_extension,
                                     Member<&hearth_agent_v1::evict, "hearth.agent/1 evict">,
                                     Member<&hearth_agent_v1::destroy, "hearth.agent/1 destroy">>();

constexpr auto kWatchedAlarms =
    watch<hearth_alarms_v1, &alarms_extension,
          Member<&hearth_alarms_v1::set, "hearth.alarms/1 set">,
          Member<&hearth_alarms_v1::list, "hearth.alarms/1 list">,
          Member<&hearth_alarms_v1::cancel, "hearth.alarms/1 cancel">>();

constexpr auto kWatchedAudit = watch<hearth_audit_v1, &audit_extension,
                                     Member<&hearth_audit_v1::record, "hearth.audit/1 record">>();

constexpr auto kWatchedCall =
    watch<hearth_call_v1, &call_extension, Member<&hearth_call_v1::start, "hearth.call/1 start">,
          Member<&hearth_call_v1::notify, "hearth.call/1 notify">,
          Member<&hearth_call_v1::caller, "hearth.call/1 caller">,
          Member<&hearth_call_v1::list, "hearth.call/1 list">,
          Member<&hearth_call_v1::remove, "hearth.call/1 remove">>();

constexpr auto kWatchedClock =
    watch<hearth_clock_v1, &clock_extension,
          Member<&hearth_clock_v1::wall_ms, "hearth.clock/1 wall_ms", Tag::kAny>,
          Member<&hearth_clock_v1::steady_ns, "hearth.clock/1 steady_ns", Tag::kAny>>();

constexpr auto kWatchedConnections =
    watch<hearth_connections_v1, &connections_extension,
          Member<&hearth_connections_v1::next, "hearth.connections/1 next">,
          Member<&hearth_connections_v1::id, "hearth.connections/1 id">,
          Member<&hearth_connections_v1::target, "hearth.connections/1 target">,
          Member<&hearth_connections_v1::header, "hearth.connections/1 header">,
          Member<&hearth_connections_v1::add_tag, "hearth.connections/1 add_tag">,
          Member<&hearth_connections_v1::tag, "hearth.connections/1 tag">,
          Member<&hearth_connections_v1::flags, "hearth.connections/1 flags">,
          Member<&hearth_connections_v1::set_flags, "hearth.connections/1 set_flags">,
          Member<&hearth_connections_v1::attachment, "hearth.connections/1 attachment">,
          Member<&hearth_connections_v1::set_attachment, "hearth.connections/1 set_attachment">,
          Member<&hearth_connections_v1::send, "hearth.connections/1 send">,
          Member<&hearth_connections_v1::broadcast, "hearth.connections/1 broadcast">,
          Member<&hearth_connections_v1::close, "hearth.connections/1 close">,
          Member<&hearth_connections_v1::claims, "hearth.connections/1 claims">,
          Member<&hearth_connections_v1::request_claims, "hearth.connections/1 request_claims">>();

constexpr auto kWatchedFetch = watch<hearth_fetch_v1, &fetch_extension,
                                     Member<&hearth_fetch_v1::start, "hearth.fetch/1 start">>();

constexpr auto kWatchedFibers =
    watch<hearth_fibers_v1, &fibers_extension,
          Member<&hearth_fibers_v1::start, "hearth.fibers/1 start">,
          Member<&hearth_fibers_v1::resume, "hearth.fibers/1 resume">,
          Member<&hearth_fibers_v1::stash, "hearth.fibers/1 stash">,
          Member<&hearth_fibers_v1::settle, "hearth.fibers/1 settle">,
          Member<&hearth_fibers_v1::inspect, "hearth.fibers/1 inspect">,
          Member<&hearth_fibers_v1::list, "hearth.fibers/1 list">,
          Member<&hearth_fibers_v1::cancel, "hearth.fibers/1 cancel">,
          Member<&hearth_fibers_v1::resolve, "hearth.fibers/1 resolve">,
          Member<&hearth_fibers_v1::revive, "hearth.fibers/1 revive">,
          Member<&hearth_fibers_v1::remove, "hearth.fibers/1 remove">,
          Member<&hearth_fibers_v1::once, "hearth.fibers/1 once">,
          Member<&hearth_fibers_v1::works_for, "hearth.fibers/1 works_for">>();

constexpr auto kWatchedHttp =
    watch<hearth_http_v1, &http_extension, Member<&hearth_http_v1::target, "hearth.http/1 target">,
          Member<&hearth_http_v1::header, "hearth.http/1 header">,
          Member<&hearth_http_v1::header_at, "hearth.http/1 header_at">,
          Member<&hearth_http_v1::set_status, "hearth.http/1 set_status">,
          Member<&hearth_http_v1::add_header, "hearth.http/1 add_header">,
          Member<&hearth_http_v1::read_body, "hearth.http/1 read_body">>();

constexpr auto kWatchedKeepAlive =
    watch<hearth_keep_alive_v1, &keep_alive_extension,
          Member<&hearth_keep_alive_v1::acquire, "hearth.keep_alive/1 acquire">,
          Member<&hearth_keep_alive_v1::release, "hearth.keep_alive/1 release">>();

constexpr auto kWatchedKv =
    watch<hearth_kv_v1, &kv_extension, Member<&hearth_kv_v1::get, "hearth.kv/1 get">,
          Member<&hearth_kv_v1::put, "hearth.kv/1 put">,
          Member<&hearth_kv_v1::remove, "hearth.kv/1 remove">,
          Member<&hearth_kv_v1::list, "hearth.kv/1 list">,
          Member<&hearth_kv_v1::usage, "hearth.kv/1 usage">>();

constexpr auto kWatchedLog =
    watch<hearth_log_v1, &log_extension,
          Member<&hearth_log_v1::write, "hearth.log/1 write", Tag::kAny>>();

constexpr auto kWatchedOperations =
    watch<hearth_operations_v1, &operations_extension,
          Member<&hearth_operations_v1::begin, "hearth.operations/1 begin">,
          Member<&hearth_operations_v1::settle, "hearth.operations/1 settle">,
          Member<&hearth_operations_v1::inspect, "hearth.operations/1 inspect">,
          Member<&hearth_operations_v1::list, "hearth.operations/1 list">,
          Member<&hearth_operations_v1::resolve, "hearth.operations/1 resolve">,
          Member<&hearth_operations_v1::answer, "hearth.operations/1 answer">,
          Member<&hearth_operations_v1::path, "hearth.operations/1 path">,
          Member<&hearth_operations_v1::drop_answer, "hearth.operations/1 drop_answer">,
          Member<&hearth_operations_v1::set_cost, "hearth.operations/1 set_cost">,
          Member<&hearth_operations_v1::describe, "hearth.operations/1 describe">>();

constexpr auto kWatchedQueue =
    watch<hearth_queue_v1, &queue_extension, Member<&hearth_queue_v1::push, "hearth.queue/1 push">,
          Member<&hearth_queue_v1::get, "hearth.queue/1 get">,
          Member<&hearth_queue_v1::list, "hearth.queue/1 list">,
          Member<&hearth_queue_v1::remove, "hearth.queue/1 remove">,
          Member<&hearth_queue_v1::remove_all, "hearth.queue/1 remove_all">,
          Member<&hearth_queue_v1::retry, "hearth.queue/1 retry">>();

constexpr auto kWatchedRandom =
    watch<hearth_random_v1, &random_extension,
          Member<&hearth_random_v1::fill, "hearth.random/1 fill", Tag::kAny>>();

constexpr auto kWatchedSchedule =
    watch<hearth_schedule_v1, &schedule_extension,
          Member<&hearth_schedule_v1::create, "hearth.schedule/1 create">,
          Member<&hearth_schedule_v1::get, "hearth.schedule/1 get">,
          Member<&hearth_schedule_v1::list, "hearth.schedule/1 list">,
          Member<&hearth_schedule_v1::cancel, "hearth.schedule/1 cancel">,
          Member<&hearth_schedule_v1::pause, "hearth.schedule/1 pause">,
          Member<&hearth_schedule_v1::retry, "hearth.schedule/1 retry">>();

constexpr auto kWatchedSql =
    watch<hearth_sql_v1, &sql_extension, Member<&hearth_sql_v1::prepare, "hearth.sql/1 prepare">,
          Member<&hearth_sql_v1::bind_null, "hearth.sql/1 bind_null", Tag::kStatement>,
          Member<&hearth_sql_v1::bind_int64, "hearth.sql/1 bind_int64", Tag::kStatement>,
          Member<&hearth_sql_v1::bind_double, "hearth.sql/1 bind_double", Tag::kStatement>,
          Member<&hearth_sql_v1::bind_text, "hearth.sql/1 bind_text", Tag::kStatement>,
          Member<&hearth_sql_v1::bind_blob, "hearth.sql/1 bind_blob", Tag::kStatement>,
          Member<&hearth_sql_v1::step, "hearth.sql/1 step", Tag::kStatement>,
          Member<&hearth_sql_v1::column_count, "hearth.sql/1 column_count", Tag::kStatement>,
          Member<&hearth_sql_v1::column_name, "hearth.sql/1 column_name", Tag::kStatement>,
          Member<&hearth_sql_v1::column_type, "hearth.sql/1 column_type", Tag::kStatement>,
          Member<&hearth_sql_v1::column_int64, "hearth.sql/1 column_int64", Tag::kStatement>,
          Member<&hearth_sql_v1::column_double, "hearth.sql/1 column_double", Tag::kStatement>,
          Member<&hearth_sql_v1::column_bytes, "hearth.sql/1 column_bytes", Tag::kStatement>,
          Member<&hearth_sql_v1::reset, "hearth.sql/1 reset", Tag::kStatement>,
          Member<&hearth_sql_v1::finalize, "hearth.sql/1 finalize", Tag::kStatement>,
          Member<&hearth_sql_v1::changes, "hearth.sql/1 changes">,
          Member<&hearth_sql_v1::last_insert_rowid, "hearth.sql/1 last_insert_rowid">,
          Member<&hearth_sql_v1::begin_savepoint, "hearth.sql/1 begin_savepoint">,
          Member<&hearth_sql_v1::release_savepoint, "hearth.sql/1 release_savepoint">,
          Member<&hearth_sql_v1::rollback_savepoint, "hearth.sql/1 rollback_savepoint">>();

constexpr auto kWatchedState =
    watch<hearth_state_v1, &state_extension, Member<&hearth_state_v1::get, "hearth.state/1 get">,
          Member<&hearth_state_v1::set, "hearth.state/1 set">,
          Member<&hearth_state_v1::set_default, "hearth.state/1 set_default">,
          Member<&hearth_state_v1::unset, "hearth.state/1 unset">>();

constexpr auto kWatchedSubAgents =
    watch<hearth_subagents_v1, &subagents_extension,
          Member<&hearth_subagents_v1::list, "hearth.subagents/1 list">,
          Member<&hearth_subagents_v1::destroy, "hearth.subagents/1 destroy">,
          Member<&hearth_subagents_v1::path, "hearth.subagents/1 path">>();

struct Known {
  std::string_view id;
  const void* table;
};

constexpr auto kKnown = std::to_array<Known>({{HEARTH_EXT_AGENT, &kWatchedAgent},
                                              {HEARTH_EXT_ALARMS, &kWatchedAlarms},
                                              {HEARTH_EXT_AUDIT, &kWatchedAudit},
                                              {HEARTH_EXT_CALL, &kWatchedCall},
                                              {HEARTH_EXT_CLOCK, &kWatchedClock},
                                              {HEARTH_EXT_CONNECTIONS, &kWatchedConnections},
                                              {HEARTH_EXT_FETCH, &kWatchedFetch},
                                              {HEARTH_EXT_FIBERS, &kWatchedFibers},
                                              {HEARTH_EXT_HTTP, &kWatchedHttp},
                                              {HEARTH_EXT_KEEP_ALIVE, &kWatchedKeepAlive},
                                              {HEARTH_EXT_KV, &kWatchedKv},
                                              {HEARTH_EXT_LOG, &kWatchedLog},
                                              {HEARTH_EXT_OPERATIONS, &kWatchedOperations},
                                              {HEARTH_EXT_QUEUE, &kWatchedQueue},
                                              {HEARTH_EXT_RANDOM, &kWatchedRandom},
                                              {HEARTH_EXT_SCHEDULE, &kWatchedSchedule},
                                              {HEARTH_EXT_SQL, &kWatchedSql},
                                              {HEARTH_EXT_STATE, &kWatchedState},
                                              {HEARTH_EXT_SUBAGENTS, &kWatchedSubAgents}});

// ---- hearth_host ----

const void* get_watched_extension(const hearth_host* table, const char* id) {
  AbiWatcher& watcher = watcher_of(table);
  constexpr AbiFunction kFunction{
      .name = "get_extension", .any_thread = true, .while_closing = true};
  static_cast<void>(watcher.enter({.function = kFunction}));
  if (id == nullptr) return nullptr;
  constexpr std::size_t kMaxIdBytes = 64;
  const std::string_view name(id, ::strnlen(id, kMaxIdBytes));
  const auto found = std::ranges::find(kKnown, name, &Known::id);
  return found == kKnown.end() || !watcher.has_extension(name) ? nullptr : found->table;
}

template <class... Entries>
constexpr hearth_host make_host() {
  constexpr auto kReal = [](const hearth_host* real) { return real; };
  hearth_host table{};
  table.struct_size = sizeof(hearth_host);
  table.abi_major = HEARTH_ABI_MAJOR;
  table.abi_minor = HEARTH_ABI_MINOR;
  table.get_extension = get_watched_extension;
  ((table.*Entries::kPointer =
        &Watched<kReal, Entries, std::remove_const_t<decltype(Entries::kPointer)>>::call),
   ...);
  return table;
}

constexpr hearth_host kHost = make_host<
    Member<&hearth_host::complete, "complete">, Member<&hearth_host::emit, "emit">,
    Member<&hearth_host::submit, "submit">, Member<&hearth_host::cancel, "cancel", Tag::kClosing>,
    Member<&hearth_host::last_error, "last_error", Tag::kClosing>,
    Member<&hearth_host::post, "post", Tag::kAny>, Member<&hearth_host::credit, "credit">>();

}  // namespace

WatchedTable watched_table(AbiWatcher& watcher) noexcept {
  return {.watcher = &watcher, .host = kHost};
}

}  // namespace hearth::extensions
