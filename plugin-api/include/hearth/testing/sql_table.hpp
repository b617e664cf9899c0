#pragma once
// The mock host's hearth.sql/1.

#include <hearth/testing/caller.hpp>
#include <hearth/testing/savepoints.hpp>

#include <sqlite3.h>

#include <cstdint>
#include <string_view>

namespace hearth::testing::detail {

// Finds the statement, then does `use` with it.
template <class Use>
hearth_status with_statement(const hearth_host* host, hearth_agent agent, hearth_statement number,
                             Use use) {
  const Caller caller(host, agent);
  if (caller.bad()) return caller.status;
  sqlite3_stmt* const statement = caller.agent->database.find(number);
  if (!statement) return HEARTH_E_GONE;
  // Good until the next call on this statement has returned.
  const Slices::RecallAtEnd expiring(caller.agent->column_bytes[number]);
  return use(caller, statement);
}

// A code of SQLite's as a status, with its words kept for last_error().
inline hearth_status outcome(const Caller& caller, int code) {
  const hearth_status status = caller.agent->database.failed(code);
  return status == HEARTH_OK ? status : caller.fail(status, caller.agent->database.error());
}

inline hearth_status sql_prepare(const hearth_host* host, hearth_agent agent, hearth_bytes sql,
                                 hearth_statement* statement) {
  const Caller caller(host, agent);
  if (caller.bad()) return caller.status;
  const hearth_status status = caller.agent->database.prepare(view(sql), *statement);
  return status == HEARTH_OK ? status : caller.fail(status, caller.agent->database.error());
}
inline hearth_status bind_null(const hearth_host* host, hearth_agent agent, hearth_statement number,
                               std::uint32_t index) {
  return with_statement(host, agent, number, [&](const Caller& caller, sqlite3_stmt* statement) {
    return outcome(caller, sqlite3_bind_null(statement, static_cast<int>(index)));
  });
}
inline hearth_status bind_int64(const hearth_host* host, hearth_agent agent,
                                hearth_statement number, std::uint32_t index, std::int64_t value) {
  return with_statement(host, agent, number, [&](const Caller& caller, sqlite3_stmt* statement) {
    return outcome(caller, sqlite3_bind_int64(statement, static_cast<int>(index), value));
  });
}
inline hearth_status bind_double(const hearth_host* host, hearth_agent agent,
                                 hearth_statement number, std::uint32_t index, double value) {
  return with_statement(host, agent, number, [&](const Caller& caller, sqlite3_stmt* statement) {
    return outcome(caller, sqlite3_bind_double(statement, static_cast<int>(index), value));
  });
}
inline hearth_status bind_text(const hearth_host* host, hearth_agent agent, hearth_statement number,
                               std::uint32_t index, hearth_bytes value) {
  return with_statement(host, agent, number, [&](const Caller& caller, sqlite3_stmt* statement) {
    const char* const text = value.len == 0 ? "" : static_cast<const char*>(value.ptr);
    return outcome(caller,
                   sqlite3_bind_text(statement, static_cast<int>(index), text,
                                     static_cast<int>(value.len), SQLITE_TRANSIENT));  // NOLINT
  });
}
inline hearth_status bind_blob(const hearth_host* host, hearth_agent agent, hearth_statement number,
                               std::uint32_t index, hearth_bytes value) {
  return with_statement(host, agent, number, [&](const Caller& caller, sqlite3_stmt* statement) {
    const void* const bytes = value.len == 0 ? "" : value.ptr;
    return outcome(caller,
                   sqlite3_bind_blob(statement, static_cast<int>(index), bytes,
                                     static_cast<int>(value.len), SQLITE_TRANSIENT));  // NOLINT
  });
}
inline hearth_status step(const hearth_host* host, hearth_agent agent, hearth_statement number) {
  return with_statement(host, agent, number, [&](const Caller& caller, sqlite3_stmt* statement) {
    const int code = sqlite3_step(statement);
    if (code == SQLITE_ROW) return hearth_status{HEARTH_ROW};
    return code == SQLITE_DONE ? hearth_status{HEARTH_OK} : outcome(caller, code);
  });
}
inline hearth_status column_count(const hearth_host* host, hearth_agent agent,
                                  hearth_statement number, std::uint32_t* count) {
  return with_statement(host, agent, number, [&](const Caller&, sqlite3_stmt* statement) {
    *count = static_cast<std::uint32_t>(sqlite3_column_count(statement));
    return hearth_status{HEARTH_OK};
  });
}
inline hearth_status column_name(const hearth_host* host, hearth_agent agent,
                                 hearth_statement number, std::uint32_t column,
                                 hearth_bytes* name) {
  return with_statement(host, agent, number, [&](const Caller& caller, sqlite3_stmt* statement) {
    const char* const text = sqlite3_column_name(statement, static_cast<int>(column));
    return text ? caller.lend(text, name) : HEARTH_E_INVALID;
  });
}

// Reads a value of the current row; INVALID past the last column.
template <class Read>
hearth_status with_column(const hearth_host* host, hearth_agent agent, hearth_statement number,
                          std::uint32_t column, Read read) {
  return with_statement(host, agent, number, [&](const Caller& caller, sqlite3_stmt* statement) {
    if (static_cast<int>(column) >= sqlite3_data_count(statement))
      return caller.fail(HEARTH_E_INVALID, "no such column");
    read(caller, statement, static_cast<int>(column));
    return hearth_status{HEARTH_OK};
  });
}
inline hearth_status column_type(const hearth_host* host, hearth_agent agent,
                                 hearth_statement number, std::uint32_t column,
                                 std::uint32_t* type) {
  return with_column(host, agent, number, column, [&](const Caller&, sqlite3_stmt* s, int i) {
    *type = static_cast<std::uint32_t>(sqlite3_column_type(s, i));
  });
}
inline hearth_status column_int64(const hearth_host* host, hearth_agent agent,
                                  hearth_statement number, std::uint32_t column,
                                  std::int64_t* value) {
  return with_column(host, agent, number, column, [&](const Caller&, sqlite3_stmt* s, int i) {
    *value = sqlite3_column_int64(s, i);
  });
}
inline hearth_status column_double(const hearth_host* host, hearth_agent agent,
                                   hearth_statement number, std::uint32_t column, double* value) {
  return with_column(host, agent, number, column, [&](const Caller&, sqlite3_stmt* s, int i) {
    *value = sqlite3_column_double(s, i);
  });
}
inline hearth_status column_bytes(const hearth_host* host, hearth_agent agent,
                                  hearth_statement number, std::uint32_t column,
                                  hearth_bytes* value) {
  return with_column(
      host, agent, number, column, [&](const Caller& caller, sqlite3_stmt* s, int i) {
        const void* const bytes = sqlite3_column_blob(s, i);
        const auto size = static_cast<std::size_t>(sqlite3_column_bytes(s, i));
        *value = caller.agent->column_bytes[number].lend(
            bytes ? std::string_view(static_cast<const char*>(bytes), size) : std::string_view());
      });
}
inline hearth_status reset(const hearth_host* host, hearth_agent agent, hearth_statement number) {
  return with_statement(host, agent, number, [&](const Caller&, sqlite3_stmt* statement) {
    sqlite3_reset(statement);
    return hearth_status{HEARTH_OK};
  });
}
inline hearth_status sql_finalize(const hearth_host* host, hearth_agent agent,
                                  hearth_statement number) {
  const Caller caller(host, agent, true);
  if (caller.bad()) return caller.status;
  caller.agent->column_bytes.erase(number);
  return caller.agent->database.finalize(number);
}
inline hearth_status changes(const hearth_host* host, hearth_agent agent, std::int64_t* rows) {
  const Caller caller(host, agent);
  if (!caller.bad()) *rows = sqlite3_changes64(caller.agent->database.handle());
  return caller.status;
}
inline hearth_status last_insert_rowid(const hearth_host* host, hearth_agent agent,
                                       std::int64_t* rowid) {
  const Caller caller(host, agent);
  if (!caller.bad()) *rowid = sqlite3_last_insert_rowid(caller.agent->database.handle());
  return caller.status;
}
inline hearth_status begin_savepoint(const hearth_host* host, hearth_agent agent,
                                     std::uint32_t* depth) {
  const Caller caller(host, agent);
  if (!caller.bad()) *depth = open_savepoint(*caller.agent);
  return caller.status;
}
inline hearth_status release_savepoint(const hearth_host* host, hearth_agent agent,
                                       std::uint32_t depth) {
  const Caller caller(host, agent);
  return caller.bad() ? caller.status : keep_savepoint(caller.engine, *caller.agent, depth);
}
inline hearth_status rollback_savepoint(const hearth_host* host, hearth_agent agent,
                                        std::uint32_t depth) {
  const Caller caller(host, agent, true);
  return caller.bad() ? caller.status : undo_savepoint(caller.engine, *caller.agent, depth);
}

inline const hearth_sql_v1& sql_table() {
  static constexpr hearth_sql_v1 kTable = {&sql_prepare,
                                           &bind_null,
                                           &bind_int64,
                                           &bind_double,
                                           &bind_text,
                                           &bind_blob,
                                           &step,
                                           &column_count,
                                           &column_name,
                                           &column_type,
                                           &column_int64,
                                           &column_double,
                                           &column_bytes,
                                           &reset,
                                           &sql_finalize,
                                           &changes,
                                           &last_insert_rowid,
                                           &begin_savepoint,
                                           &release_savepoint,
                                           &rollback_savepoint};
  return kTable;
}

}  // namespace hearth::testing::detail
