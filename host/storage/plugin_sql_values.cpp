// The part of PluginSql that moves values: parameters in, columns out.

#include "storage/plugin_sql.hpp"

#include <sqlite3.h>

#include <string>
#include <utility>

namespace hearth::storage {
namespace {

Error invalid_call(std::string message) {
  return Error{Errc::kInvalidArgument, std::move(message)};
}

}  // namespace

// ---- parameters --------------------------------------------------------------------------------

Result<sqlite3_stmt*> PluginSql::find_to_bind(StatementHandle handle, std::string_view value) {
  const Result<Compiled*> found = find(handle);
  if (!found) return found.error();
  if ((*found)->cursor == Cursor::kOnRow)
    return invalid_call("the statement is between two rows: reset it before binding");
  if (value.size() > limits_.max_value_bytes)
    return Error{Errc::kLimitExceeded,
                 "the value is longer than " + std::to_string(limits_.max_value_bytes) + " bytes"};
  if ((*found)->searches && value.size() > kMostSearchBytes)
    return Error{Errc::kLimitExceeded, "a text bound to a full-text search has at most " +
                                           std::to_string(kMostSearchBytes) + " bytes"};
  return (*found)->stmt.get();
}

Result<void> PluginSql::bound(int code) {
  if (code == SQLITE_OK) return {};
  if (code == SQLITE_RANGE) return invalid_call("the statement has no parameter of that number");
  throw_storage_error(*connection_, "binding a parameter of the plugin");
}

Result<void> PluginSql::bind_null(StatementHandle handle, int index) {
  const auto stmt = find_to_bind(handle, {});
  if (!stmt) return stmt.error();
  return bound(sqlite3_bind_null(*stmt, index));
}

Result<void> PluginSql::bind_int64(StatementHandle handle, int index, std::int64_t value) {
  const auto stmt = find_to_bind(handle, {});
  if (!stmt) return stmt.error();
  return bound(sqlite3_bind_int64(*stmt, index, value));
}

Result<void> PluginSql::bind_double(StatementHandle handle, int index, double value) {
  const auto stmt = find_to_bind(handle, {});
  if (!stmt) return stmt.error();
  return bound(sqlite3_bind_double(*stmt, index, value));
}

Result<void> PluginSql::bind_text(StatementHandle handle, int index, std::string_view value) {
  const auto stmt = find_to_bind(handle, value);
  if (!stmt) return stmt.error();
  // An empty view may carry a null pointer, which SQLite would bind as NULL instead of ''.
  return bound(sqlite3_bind_text64(*stmt, index, value.empty() ? "" : value.data(), value.size(),
                                   SQLITE_TRANSIENT, SQLITE_UTF8));
}

Result<void> PluginSql::bind_blob(StatementHandle handle, int index,
                                  std::span<const std::byte> value) {
  // (SQLite takes a blob as text where it needs one.)
  const auto stmt =
      find_to_bind(handle, {reinterpret_cast<const char*>(value.data()), value.size()});
  if (!stmt) return stmt.error();
  const void* const data = value.empty() ? "" : static_cast<const void*>(value.data());
  return bound(sqlite3_bind_blob64(*stmt, index, data, value.size(), SQLITE_TRANSIENT));
}

Result<int> PluginSql::parameter_count(StatementHandle handle) {
  const Result<Compiled*> found = find(handle);
  if (!found) return found.error();
  return sqlite3_bind_parameter_count((*found)->stmt.get());
}

// ---- columns -----------------------------------------------------------------------------------

Result<sqlite3_stmt*> PluginSql::find_value(StatementHandle handle, int column) {
  const Result<Compiled*> found = find(handle);
  if (!found) return found.error();
  if ((*found)->cursor != Cursor::kOnRow) return invalid_call("the statement is not on a row");
  sqlite3_stmt* const stmt = (*found)->stmt.get();
  if (column < 0 || column >= sqlite3_data_count(stmt))
    return invalid_call("the row has no column of that number");
  return stmt;
}

Result<int> PluginSql::column_count(StatementHandle handle) {
  const Result<Compiled*> found = find(handle);
  if (!found) return found.error();
  return sqlite3_column_count((*found)->stmt.get());
}

Result<std::string_view> PluginSql::column_name(StatementHandle handle, int column) {
  const Result<Compiled*> found = find(handle);
  if (!found) return found.error();
  const char* const name = sqlite3_column_name((*found)->stmt.get(), column);
  if (name == nullptr) return invalid_call("the result has no column of that number");
  return std::string_view(name);
}

Result<ColumnType> PluginSql::column_type(StatementHandle handle, int column) {
  const auto stmt = find_value(handle, column);
  if (!stmt) return stmt.error();
  return static_cast<ColumnType>(sqlite3_column_type(*stmt, column));
}

Result<std::int64_t> PluginSql::column_int64(StatementHandle handle, int column) {
  const auto stmt = find_value(handle, column);
  if (!stmt) return stmt.error();
  return std::int64_t{sqlite3_column_int64(*stmt, column)};
}

Result<double> PluginSql::column_double(StatementHandle handle, int column) {
  const auto stmt = find_value(handle, column);
  if (!stmt) return stmt.error();
  return sqlite3_column_double(*stmt, column);
}

Result<std::string_view> PluginSql::column_text(StatementHandle handle, int column) {
  const auto stmt = find_value(handle, column);
  if (!stmt) return stmt.error();
  // Order matters: column_bytes() after column_text() gives the size of the UTF-8 form.
  const unsigned char* const data = sqlite3_column_text(*stmt, column);
  const int size = sqlite3_column_bytes(*stmt, column);
  return std::string_view(reinterpret_cast<const char*>(data), static_cast<std::size_t>(size));
}

Result<std::span<const std::byte>> PluginSql::column_blob(StatementHandle handle, int column) {
  const auto stmt = find_value(handle, column);
  if (!stmt) return stmt.error();
  const void* const data = sqlite3_column_blob(*stmt, column);
  const int size = sqlite3_column_bytes(*stmt, column);
  return std::span(static_cast<const std::byte*>(data), static_cast<std::size_t>(size));
}

}  // namespace hearth::storage
