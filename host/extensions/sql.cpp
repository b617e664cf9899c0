#include "extensions/sql.hpp"

#include "extensions/abi_call.hpp"
#include "extensions/state.hpp"
#include "storage/agent_database.hpp"

#include <limits>

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

// Runs `body(PluginSql&, StatementHandle)`, which gives a Result, and passes its value to `store`.
template <class Body, class Store>
hearth_status on_statement(const hearth_host* host, hearth_agent agent, hearth_statement statement,
                           const Body& body, const Store& store) noexcept {
  return for_agent(host, agent, [&](AgentContext& it) {
    const StatementHandle handle{statement};
    const auto result = body(sql_of(it), handle);
    if (!result) return fail_statement(it, handle, result.error());
    return store(it, result);
  });
}

// `store` for functions without a result.
constexpr auto kNothing = [](AgentContext&, const auto&) { return kOk; };

// `store` that writes to `*out`.
template <class Out>
auto into(Out* out) {
  return [out](AgentContext& it, const auto& result) {
    if (out == nullptr) return no_place(it);
    *out = static_cast<Out>(*result);
    return kOk;
  };
}

// Indexes come as uint32_t. No statement has an index beyond an int.
int to_index(std::uint32_t index) {
  return std::in_range<int>(index) ? static_cast<int>(index) : std::numeric_limits<int>::max();
}

hearth_status prepare(const hearth_host* host, hearth_agent agent, hearth_bytes sql,
                      hearth_statement* statement) noexcept {
  return for_text(host, agent, sql, [&](AgentContext& it, std::string_view text) {
    if (statement == nullptr)
      return fail(it, HEARTH_E_INVALID, "prepare() needs a place for the statement");
    const auto prepared = sql_of(it).prepare(text);
    if (!prepared) return fail(it, prepared.error());
    *statement = static_cast<hearth_statement>(*prepared);
    return kOk;
  });
}

hearth_status bind_null(const hearth_host* host, hearth_agent agent, hearth_statement statement,
                        std::uint32_t index) noexcept {
  return on_statement(
      host, agent, statement,
      [&](PluginSql& sql, StatementHandle handle) {
        return sql.bind_null(handle, to_index(index));
      },
      kNothing);
}

hearth_status bind_int64(const hearth_host* host, hearth_agent agent, hearth_statement statement,
                         std::uint32_t index, std::int64_t value) noexcept {
  return on_statement(
      host, agent, statement,
      [&](PluginSql& sql, StatementHandle handle) {
        return sql.bind_int64(handle, to_index(index), value);
      },
      kNothing);
}

hearth_status bind_double(const hearth_host* host, hearth_agent agent, hearth_statement statement,
                          std::uint32_t index, double value) noexcept {
  return on_statement(
      host, agent, statement,
      [&](PluginSql& sql, StatementHandle handle) {
        return sql.bind_double(handle, to_index(index), value);
      },
      kNothing);
}

hearth_status bind_text(const hearth_host* host, hearth_agent agent, hearth_statement statement,
                        std::uint32_t index, hearth_bytes value) noexcept {
  return for_text(host, agent, value, [&](AgentContext& it, std::string_view text) {
    const StatementHandle handle{statement};
    const auto bound = sql_of(it).bind_text(handle, to_index(index), text);
    return bound ? kOk : fail_statement(it, handle, bound.error());
  });
}

hearth_status bind_blob(const hearth_host* host, hearth_agent agent, hearth_statement statement,
                        std::uint32_t index, hearth_bytes value) noexcept {
  return for_agent(host, agent, [&](AgentContext& it) {
    const auto bytes = bytes_of(value);
    if (!bytes) return bad_slice(it);
    const StatementHandle handle{statement};
    const auto bound =
        sql_of(it).bind_blob(handle, to_index(index), std::as_bytes(std::span(*bytes)));
    return bound ? kOk : fail_statement(it, handle, bound.error());
  });
}

hearth_status step(const hearth_host* host, hearth_agent agent,
                   hearth_statement statement) noexcept {
  return on_statement(
      host, agent, statement,
      [](PluginSql& sql, StatementHandle handle) { return sql.step(handle); },
      [](AgentContext&, const Result<StepOutcome>& outcome) {
        return *outcome == StepOutcome::kRow ? hearth_status{HEARTH_ROW} : kOk;
      });
}

hearth_status column_count(const hearth_host* host, hearth_agent agent, hearth_statement statement,
                           std::uint32_t* count) noexcept {
  return on_statement(
      host, agent, statement,
      [](PluginSql& sql, StatementHandle handle) { return sql.column_count(handle); }, into(count));
}

hearth_status column_name(const hearth_host* host, hearth_agent agent, hearth_statement statement,
                          std::uint32_t column, hearth_bytes* name) noexcept {
  return on_statement(
      host, agent, statement,
      [&](PluginSql& sql, StatementHandle handle) {
        return sql.column_name(handle, to_index(column));
      },
      [name](AgentContext& it, const Result<std::string_view>& text) {
        if (name == nullptr) return fail(it, HEARTH_E_INVALID, "the place for the name is null");
        *name = slice_of(*text);
        return kOk;
      });
}

hearth_status column_type(const hearth_host* host, hearth_agent agent, hearth_statement statement,
                          std::uint32_t column, std::uint32_t* type) noexcept {
  static_assert(static_cast<int>(ColumnType::kInteger) == HEARTH_SQL_INTEGER &&
                static_cast<int>(ColumnType::kNull) == HEARTH_SQL_NULL);
  return on_statement(
      host, agent, statement,
      [&](PluginSql& sql, StatementHandle handle) {
        return sql.column_type(handle, to_index(column));
      },
      into(type));
}

hearth_status column_int64(const hearth_host* host, hearth_agent agent, hearth_statement statement,
                           std::uint32_t column, std::int64_t* value) noexcept {
  return on_statement(
      host, agent, statement,
      [&](PluginSql& sql, StatementHandle handle) {
        return sql.column_int64(handle, to_index(column));
      },
      into(value));
}

hearth_status column_double(const hearth_host* host, hearth_agent agent, hearth_statement statement,
                            std::uint32_t column, double* value) noexcept {
  return on_statement(
      host, agent, statement,
      [&](PluginSql& sql, StatementHandle handle) {
        return sql.column_double(handle, to_index(column));
      },
      into(value));
}

hearth_status column_bytes(const hearth_host* host, hearth_agent agent, hearth_statement statement,
                           std::uint32_t column, hearth_bytes* value) noexcept {
  return for_agent(host, agent, [&](AgentContext& it) {
    if (value == nullptr) return fail(it, HEARTH_E_INVALID, "the place for the value is null");
    PluginSql& sql = sql_of(it);
    const StatementHandle handle{statement};
    const int index = to_index(column);
    const auto type = sql.column_type(handle, index);
    if (!type) return fail_statement(it, handle, type.error());
    if (*type == ColumnType::kBlob) {
      const auto blob = sql.column_blob(handle, index);
      if (!blob) return fail_statement(it, handle, blob.error());
      *value = {blob->data(), blob->size()};
      return kOk;
    }
    const auto text = sql.column_text(handle, index);
    if (!text) return fail_statement(it, handle, text.error());
    *value = slice_of(*text);
    return kOk;
  });
}

hearth_status reset(const hearth_host* host, hearth_agent agent,
                    hearth_statement statement) noexcept {
  return on_statement(
      host, agent, statement,
      [](PluginSql& sql, StatementHandle handle) { return sql.reset(handle); }, kNothing);
}

hearth_status finalize(const hearth_host* host, hearth_agent agent,
                       hearth_statement statement) noexcept {
  return on_statement(
      host, agent, statement,
      [](PluginSql& sql, StatementHandle handle) { return sql.finalize(handle); }, kNothing);
}

hearth_status changes(const hearth_host* host, hearth_agent agent, std::int64_t* rows) noexcept {
  return for_agent(host, agent, [&](AgentContext& it) {
    if (rows == nullptr) return fail(it, HEARTH_E_INVALID, "the place for the result is null");
    *rows = sql_of(it).changes();
    return kOk;
  });
}

hearth_status last_insert_rowid(const hearth_host* host, hearth_agent agent,
                                std::int64_t* rowid) noexcept {
  return for_agent(host, agent, [&](AgentContext& it) {
    if (rowid == nullptr) return fail(it, HEARTH_E_INVALID, "the place for the result is null");
    *rowid = sql_of(it).last_insert_rowid();
    return kOk;
  });
}

hearth_status begin_savepoint(const hearth_host* host, hearth_agent agent,
                              std::uint32_t* depth) noexcept {
  return for_agent(host, agent, [&](AgentContext& it) {
    if (depth == nullptr) return fail(it, HEARTH_E_INVALID, "the place for the savepoint is null");
    const auto savepoint = sql_of(it).begin_savepoint();
    if (!savepoint) return fail(it, savepoint.error());
    const auto number = static_cast<std::uint64_t>(*savepoint);
    if (!std::in_range<std::uint32_t>(number)) {
      // Numbers count up over the life of an agent; the ABI has room for four thousand million.
      const auto released = sql_of(it).release(*savepoint);
      return fail(it, HEARTH_E_LIMIT,
                  released ? "too many savepoints in one life" : released.error().message);
    }
    *depth = static_cast<std::uint32_t>(number);
    return kOk;
  });
}

// For a savepoint PluginSql's "invalid" means only that the savepoint has ended.
hearth_status end_savepoint(AgentContext& agent, const Result<void>& ended) {
  if (!ended && ended.error().code == Errc::kInvalidArgument) {
    return fail(agent, HEARTH_E_GONE, ended.error().message);
  }
  return status_of(agent, ended);
}

hearth_status release_savepoint(const hearth_host* host, hearth_agent agent,
                                std::uint32_t depth) noexcept {
  return for_agent(host, agent, [&](AgentContext& it) {
    return end_savepoint(it, sql_of(it).release(SavepointHandle{depth}));
  });
}

hearth_status rollback_savepoint(const hearth_host* host, hearth_agent agent,
                                 std::uint32_t depth) noexcept {
  return for_agent(host, agent, [&](AgentContext& it) {
    return end_savepoint(it, sql_of(it).rollback_to(SavepointHandle{depth}));
  });
}

constexpr hearth_sql_v1 kSql = {.prepare = prepare,
                                .bind_null = bind_null,
                                .bind_int64 = bind_int64,
                                .bind_double = bind_double,
                                .bind_text = bind_text,
                                .bind_blob = bind_blob,
                                .step = step,
                                .column_count = column_count,
                                .column_name = column_name,
                                .column_type = column_type,
                                .column_int64 = column_int64,
                                .column_double = column_double,
                                .column_bytes = column_bytes,
                                .reset = reset,
                                .finalize = finalize,
                                .changes = changes,
                                .last_insert_rowid = last_insert_rowid,
                                .begin_savepoint = begin_savepoint,
                                .release_savepoint = release_savepoint,
                                .rollback_savepoint = rollback_savepoint};

}  // namespace

const hearth_sql_v1& sql_extension() noexcept {
  return kSql;
}

}  // namespace hearth::extensions
