#pragma once
// The mock host's hearth.kv/1, over the agent's database, so that a rollback undoes it.

#include <hearth/ext/kv.h>
#include <hearth/testing/caller.hpp>

#include <sqlite3.h>

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

namespace hearth::testing::detail {

// Calls `see(statement)` for each row of a query of the host's own.
template <class See>
void each_value(AgentRecord& agent, const char* query,
                std::initializer_list<std::string_view> texts, See see) {
  agent.database.write_own(
      "CREATE TABLE IF NOT EXISTS cf_agents_kv(key TEXT PRIMARY KEY NOT NULL, value TEXT NOT NULL)",
      {});
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v2(agent.database.handle(), query, -1, &statement, nullptr) != SQLITE_OK)
    throw std::logic_error(sqlite3_errmsg(agent.database.handle()));
  int place = 0;
  for (const std::string_view text : texts)  // no bytes at no place would be NULL
    sqlite3_bind_text(statement, ++place, text.empty() ? "" : text.data(),
                      static_cast<int>(text.size()), SQLITE_TRANSIENT);  // NOLINT
  while (sqlite3_step(statement) == SQLITE_ROW) see(statement);
  sqlite3_finalize(statement);
}
inline std::string value_column(sqlite3_stmt* row, int column) {
  const auto* const text = reinterpret_cast<const char*>(sqlite3_column_text(row, column));
  return {text, static_cast<std::size_t>(sqlite3_column_bytes(row, column))};
}

inline bool is_value_key(std::string_view key) {
  return !key.empty() && key.size() <= 2048 && key.find('\0') == std::string_view::npos &&
         is_utf8(key);
}
inline hearth_status no_value_key(const Caller& caller) {
  return caller.fail(HEARTH_E_INVALID, "a key is 1 to 2048 bytes of UTF-8 without NUL");
}
inline std::optional<std::string> find_value(AgentRecord& agent, std::string_view key) {
  std::optional<std::string> value;
  each_value(agent, "SELECT value FROM cf_agents_kv WHERE key = ?", {key},
             [&](sqlite3_stmt* row) { value = value_column(row, 0); });
  return value;
}
inline void count_values(AgentRecord& agent, std::uint64_t& keys, std::uint64_t& bytes) {
  keys = bytes = 0;
  each_value(agent, "SELECT key, value FROM cf_agents_kv", {}, [&](sqlite3_stmt* row) {
    ++keys;
    bytes += value_column(row, 0).size() + value_column(row, 1).size();
  });
}

inline hearth_status get_value(const hearth_host* host, hearth_agent agent, hearth_bytes key,
                               hearth_bytes* value) {
  const Caller caller(host, agent);
  if (caller.bad()) return caller.status;
  if (!is_value_key(view(key))) return no_value_key(caller);
  const auto found = find_value(*caller.agent, view(key));
  if (!found) return caller.fail(HEARTH_E_NOT_FOUND, "nothing is kept under this key");
  return caller.lend(*found, value);
}
inline hearth_status put_value(const hearth_host* host, hearth_agent agent, hearth_bytes key,
                               hearth_bytes value) {
  constexpr std::uint64_t kMostKeys = 10'000;  // a class's defaults
  constexpr std::size_t kMostBytes = std::size_t{1} << 20;
  constexpr std::uint64_t kMostInAll = std::uint64_t{50} << 20;
  const Caller caller(host, agent);
  if (caller.bad()) return caller.status;
  if (!is_value_key(view(key))) return no_value_key(caller);
  if (value.len > kMostBytes)
    return caller.fail(HEARTH_E_LIMIT, "a value has at most 1048576 bytes");
  if (!is_json(view(value))) return caller.fail(HEARTH_E_INVALID, "a value must be JSON");
  const auto before = find_value(*caller.agent, view(key));
  std::uint64_t keys = 0;
  std::uint64_t bytes = 0;
  count_values(*caller.agent, keys, bytes);
  if (!before && keys >= kMostKeys)
    return caller.fail(HEARTH_E_LIMIT, "an agent has at most 10000 keys");
  const std::size_t replaced = before ? key.len + before->size() : 0;
  if (bytes + key.len + value.len - replaced > kMostInAll)
    return caller.fail(HEARTH_E_LIMIT,
                       "the keys and values of an agent have at most 52428800 bytes");
  caller.agent->database.write_own(
      "INSERT INTO cf_agents_kv(key, value) VALUES(?, ?) "
      "ON CONFLICT(key) DO UPDATE SET value = excluded.value",
      {std::string(view(key)), std::string(view(value))});
  return HEARTH_OK;
}
inline hearth_status remove_value(const hearth_host* host, hearth_agent agent, hearth_bytes key) {
  const Caller caller(host, agent);
  if (caller.bad()) return caller.status;
  if (!is_value_key(view(key))) return no_value_key(caller);
  if (!find_value(*caller.agent, view(key)))
    return caller.fail(HEARTH_E_NOT_FOUND, "nothing is kept under this key");
  caller.agent->database.write_own("DELETE FROM cf_agents_kv WHERE key = ?",
                                   {std::string(view(key))});
  return HEARTH_OK;
}
inline hearth_status list_values(const hearth_host* host, hearth_agent agent,
                                 const hearth_kv_filter* filter, hearth_bytes* entries) {
  const Caller caller(host, agent);
  if (caller.bad()) return caller.status;
  if (filter->limit > 1000)
    return caller.fail(HEARTH_E_INVALID, "at most 1000 values are listed at once");
  const std::string_view prefix = view(filter->prefix);
  const std::size_t limit = filter->limit == 0 ? 100 : filter->limit;
  Json list = Json::array();
  each_value(*caller.agent, "SELECT key, value FROM cf_agents_kv WHERE key > ? ORDER BY key",
             {view(filter->after)}, [&](sqlite3_stmt* row) {
               const std::string key = value_column(row, 0);
               if (list.size() < limit && key.starts_with(prefix))
                 list.push_back({{"key", key}, {"value", parse_json(value_column(row, 1))}});
             });
  return caller.lend(to_text(list), entries);
}
inline hearth_status values_usage(const hearth_host* host, hearth_agent agent, std::uint64_t* keys,
                                  std::uint64_t* bytes) {
  const Caller caller(host, agent);
  if (caller.bad()) return caller.status;
  std::uint64_t counted[2] = {};
  count_values(*caller.agent, counted[0], counted[1]);
  if (keys) *keys = counted[0];
  if (bytes) *bytes = counted[1];
  return HEARTH_OK;
}

inline constexpr hearth_kv_v1 kKv = {&get_value, &put_value, &remove_value, &list_values,
                                     &values_usage};

}  // namespace hearth::testing::detail
