#include "server/agent_sql.hpp"

#include "extensions/sql.hpp"
#include "json/json.hpp"
#include "json/json_text.hpp"
#include "storage/plugin_sql.hpp"

#include <cmath>
#include <utility>

namespace hearth::server {
namespace {

using storage::PluginSql;
using storage::StatementHandle;

// Finalizes a statement at the end of its block.
class Prepared {
 public:
  Prepared(PluginSql& sql, StatementHandle handle) : sql_(sql), handle_(handle) {}
  ~Prepared() {
    (void)sql_.finalize(handle_);
    sql_.limit_time(std::nullopt);
  }
  Prepared(const Prepared&) = delete;
  Prepared& operator=(const Prepared&) = delete;

 private:
  PluginSql& sql_;
  const StatementHandle handle_;
};

std::string hex_of(std::span<const std::byte> bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string hex;
  for (const std::byte each : bytes) {
    hex += kDigits[std::to_integer<unsigned>(each) >> 4U];
    hex += kDigits[std::to_integer<unsigned>(each) & 15U];
  }
  return hex;
}

// Twice the bytes: so long are their digits, and JSON with escapes.
Result<void> has_room(const std::string& json, std::size_t bytes) {
  if (json.size() + 2 * bytes <= 5 * kMostSqlBytes) return {};
  return Error{Errc::kLimitExceeded,
               "a row is too large to be shown: select fewer columns, or a part with substr()"};
}

// A value of the row, as JSON.
Result<void> append_value(PluginSql& sql, StatementHandle handle, int column, std::string& json) {
  const auto type = sql.column_type(handle, column);
  if (!type) return type.error();
  switch (*type) {
    case storage::ColumnType::kInteger: {
      const auto number = sql.column_int64(handle, column);
      if (!number) return number.error();
      json += std::to_string(*number);
      return {};
    }
    case storage::ColumnType::kDouble: {
      const auto number = sql.column_double(handle, column);
      if (!number) return number.error();
      if (std::isfinite(*number))
        json += dump_json(Json(*number));
      else
        json += *number > 0 ? R"("Infinity")" : R"("-Infinity")";  // JSON has no such number
      return {};
    }
    case storage::ColumnType::kText: {
      const auto text = sql.column_text(handle, column);
      if (!text) return text.error();
      if (auto room = has_room(json, text->size()); room.has_error()) return room;
      append_json_string(json, *text);
      return {};
    }
    case storage::ColumnType::kBlob: {
      const auto bytes = sql.column_blob(handle, column);
      if (!bytes) return bytes.error();
      if (auto room = has_room(json, bytes->size()); room.has_error()) return room;
      json += R"({"blob":")" + hex_of(*bytes) + R"("})";
      return {};
    }
    case storage::ColumnType::kNull: break;
  }
  json += "null";
  return {};
}

Result<std::string> rows_of(PluginSql& sql, StatementHandle handle, int columns,
                            const Clock& clock) {
  const SteadyTime end = clock.steady_now() + kSqlPatience;
  std::string json;
  for (std::size_t rows = 0;; ++rows) {
    const SteadyTime now = clock.steady_now();
    if (now >= end)
      return Error{Errc::kTimeout, "the query takes longer than 2 s: narrow it, or add LIMIT"};
    sql.limit_time(std::chrono::ceil<std::chrono::milliseconds>(end - now));
    const auto outcome = sql.step(handle);
    if (!outcome) return outcome.error();
    const bool is_over = *outcome == storage::StepOutcome::kDone;
    if (is_over || rows == kMostSqlRows || json.size() >= kMostSqlBytes)
      return "[" + json + R"(],"truncated":)" + (is_over ? "false" : "true");
    json += rows == 0 ? "[" : ",[";
    for (int column = 0; column < columns; ++column) {
      if (column > 0) json += ',';
      if (auto added = append_value(sql, handle, column, json); added.has_error())
        return added.error();
    }
    json += ']';
  }
}

}  // namespace

Result<std::string> read_with_sql(extensions::AgentContext& agent, std::string_view text,
                                  std::optional<std::string_view> value) {
  PluginSql& sql = agent.of<extensions::SqlExtension>().sql();
  const auto handle = sql.prepare(text, false);
  if (!handle) return handle.error();
  const Prepared prepared(sql, *handle);
  const auto writes = sql.writes(*handle);
  if (!writes) return writes.error();
  if (*writes)
    return Error{Errc::kForbidden, "only statements that read are run here, such as SELECT"};
  if (value) {
    if (auto bound = sql.bind_text(*handle, 1, *value); bound.has_error()) return bound.error();
  }
  const auto columns = sql.column_count(*handle);
  if (!columns) return columns.error();
  std::string json = R"({"columns":[)";
  for (int column = 0; column < *columns; ++column) {
    const auto name = sql.column_name(*handle, column);
    if (!name) return name.error();
    if (column > 0) json += ',';
    append_json_string(json, *name);
  }
  const auto rows = rows_of(sql, *handle, *columns, agent.clock());
  if (!rows) return rows.error();
  return json + R"(],"rows":)" + *rows + "}";
}

}  // namespace hearth::server
