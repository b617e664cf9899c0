#include "extensions/sql.hpp"

#include "extensions/abi_call.hpp"
#include "extensions/state.hpp"
#include "storage/agent_database.hpp"

#include <limits>
#include <span>

namespace hearth::extensions {

SqlExtension::SqlExtension(AgentContext& agent)
    : sql_(agent.database(), agent.clock(), agent.settings().sql,
           [&agent](std::uint64_t last_write) { agent.of<StateExtension>().undone(last_write); }) {}

// ---- its C functions ----------------------------------------------------------------------------

namespace {

using storage::ColumnType;
using storage::PluginSql;
using storage::SavepointHandle;
using storage::StatementHandle;
using storage::StepOutcome;

PluginSql& sql_of(AgentContext& agent) {
  return agent.of<SqlExtension>().sql();
}

// PluginSql gives "invalid" for a stale handle and for an index that does not exist. The plugin
// gets a different status for each.
hearth_status fail_statement(AgentContext& agent, StatementHandle handle, const Error& error) {
  if (error.code == Errc::kInvalidArgument && !sql_of(agent).parameter_count(handle)) {
    return fail(agent, HEARTH_E_GONE, error.message);
  }
  return fail(agent, error);
}

template <class T>
hearth_status statement_status(AgentContext& it, hearth_statement statement,
                               const Result<T>& done) {
  return done ? hearth_status{HEARTH_OK}
              : fail_statement(it, StatementHandle{statement}, done.error());
}

template <class T, class Out>
hearth_status give(AgentContext& it, hearth_statement statement, const Result<T>& result,
                   Out* out) {
  if (!result) return fail_statement(it, StatementHandle{statement}, result.error());
  if (out == nullptr) return fail(it, HEARTH_E_INVALID, "the place for the result is null");
  *out = static_cast<Out>(*result);
  return HEARTH_OK;
}

// Indexes come as uint32_t. No statement has an index beyond an int.
int to_index(std::uint32_t index) {
  return std::in_range<int>(index) ? static_cast<int>(index) : std::numeric_limits<int>::max();
}

Result<void> prepare(AgentContext& it, std::string_view sql, hearth_statement& statement) {
  const auto prepared = sql_of(it).prepare(sql);
  if (!prepared) return prepared.error();
  statement = static_cast<hearth_statement>(*prepared);
  return {};
}

template <auto kBind, class... Value>
hearth_status bind(AgentContext& it, hearth_statement statement, std::uint32_t index,
                   Value... value) {
  return statement_status(
      it, statement, (sql_of(it).*kBind)(StatementHandle{statement}, to_index(index), value...));
}

hearth_status bind_blob(AgentContext& it, hearth_statement statement, std::uint32_t index,
                        AnyBytes value) {
  const auto bytes = std::as_bytes(std::span(value.bytes));
  return statement_status(it, statement,
                          sql_of(it).bind_blob(StatementHandle{statement}, to_index(index), bytes));
}

hearth_status step(AgentContext& it, hearth_statement statement) {
  const auto outcome = sql_of(it).step(StatementHandle{statement});
  const bool has_row = outcome && *outcome == StepOutcome::kRow;
  return has_row ? hearth_status{HEARTH_ROW} : statement_status(it, statement, outcome);
}

hearth_status column_count(AgentContext& it, hearth_statement statement, std::uint32_t* count) {
  return give(it, statement, sql_of(it).column_count(StatementHandle{statement}), count);
}

template <auto kColumn, class Value>
hearth_status column(AgentContext& it, hearth_statement statement, std::uint32_t index,
                     Value* value) {
  return give(it, statement, (sql_of(it).*kColumn)(StatementHandle{statement}, to_index(index)),
              value);
}

hearth_status column_name(AgentContext& it, hearth_statement statement, std::uint32_t column,
                          hearth_bytes* name) {
  const auto text = sql_of(it).column_name(StatementHandle{statement}, to_index(column));
  if (text && name == nullptr) return fail(it, HEARTH_E_INVALID, "the place for the name is null");
  if (text) *name = slice_of(*text);
  return statement_status(it, statement, text);
}

static_assert(static_cast<int>(ColumnType::kInteger) == HEARTH_SQL_INTEGER &&
              static_cast<int>(ColumnType::kNull) == HEARTH_SQL_NULL);

hearth_status column_bytes(AgentContext& it, hearth_statement statement, std::uint32_t column,
                           hearth_bytes* value) {
  if (value == nullptr) return fail(it, HEARTH_E_INVALID, "the place for the value is null");
  PluginSql& sql = sql_of(it);
  const StatementHandle handle{statement};
  const int index = to_index(column);
  const auto type = sql.column_type(handle, index);
  if (!type) return fail_statement(it, handle, type.error());
  if (*type == ColumnType::kBlob) {
    const auto blob = sql.column_blob(handle, index);
    if (blob) *value = {blob->data(), blob->size()};
    return statement_status(it, statement, blob);
  }
  const auto text = sql.column_text(handle, index);
  if (text) *value = slice_of(*text);
  return statement_status(it, statement, text);
}

template <auto kEnd>
hearth_status end(AgentContext& it, hearth_statement statement) {
  return statement_status(it, statement, (sql_of(it).*kEnd)(StatementHandle{statement}));
}

void changes(AgentContext& it, std::int64_t& rows) {
  rows = sql_of(it).changes();
}

void last_insert_rowid(AgentContext& it, std::int64_t& rowid) {
  rowid = sql_of(it).last_insert_rowid();
}

Result<void> begin_savepoint(AgentContext& it, std::uint32_t& depth) {
  const auto savepoint = sql_of(it).begin_savepoint();
  if (!savepoint) return savepoint.error();
  const auto number = static_cast<std::uint64_t>(*savepoint);
  if (!std::in_range<std::uint32_t>(number)) {
    // Numbers count up over the life of an agent; the ABI has room for four thousand million.
    const auto released = sql_of(it).release(*savepoint);
    return Error{Errc::kLimitExceeded,
                 released ? "too many savepoints in one life" : released.error().message};
  }
  depth = static_cast<std::uint32_t>(number);
  return {};
}

// For a savepoint PluginSql's "invalid" means only that the savepoint has ended.
hearth_status end_savepoint(AgentContext& agent, const Result<void>& ended) {
  if (!ended && ended.error().code == Errc::kInvalidArgument) {
    return fail(agent, HEARTH_E_GONE, ended.error().message);
  }
  return status_of(agent, ended);
}

hearth_status release_savepoint(AgentContext& it, std::uint32_t depth) {
  return end_savepoint(it, sql_of(it).release(SavepointHandle{depth}));
}

hearth_status rollback_savepoint(AgentContext& it, std::uint32_t depth) {
  return end_savepoint(it, sql_of(it).rollback_to(SavepointHandle{depth}));
}

}  // namespace

constexpr hearth_sql_v1 kSqlTable = {
    .prepare = kDoor<prepare>,
    .bind_null = kDoor<bind<&PluginSql::bind_null>>,
    .bind_int64 = kDoor<bind<&PluginSql::bind_int64, std::int64_t>>,
    .bind_double = kDoor<bind<&PluginSql::bind_double, double>>,
    .bind_text = kDoor<bind<&PluginSql::bind_text, std::string_view>>,
    .bind_blob = kDoor<bind_blob>,
    .step = kDoor<step>,
    .column_count = kDoor<column_count>,
    .column_name = kDoor<column_name>,
    .column_type = kDoor<column<&PluginSql::column_type, std::uint32_t>>,
    .column_int64 = kDoor<column<&PluginSql::column_int64, std::int64_t>>,
    .column_double = kDoor<column<&PluginSql::column_double, double>>,
    .column_bytes = kDoor<column_bytes>,
    .reset = kDoor<end<&PluginSql::reset>>,
    .finalize = kDoor<end<&PluginSql::finalize>>,
    .changes = kDoor<changes>,
    .last_insert_rowid = kDoor<last_insert_rowid>,
    .begin_savepoint = kDoor<begin_savepoint>,
    .release_savepoint = kDoor<release_savepoint>,
    .rollback_savepoint = kDoor<rollback_savepoint>};

}  // namespace hearth::extensions
