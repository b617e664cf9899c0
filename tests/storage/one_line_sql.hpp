#pragma once
// What tests store in a database, and ask it, in one line.

#include "storage/agent_database.hpp"
#include "storage/statement.hpp"

#include <cstdint>
#include <string>
#include <string_view>

struct sqlite3;

namespace hearth::storage {

inline void commit_state(AgentDatabase& database, const std::string& state) {
  database.store_state(state);
  database.commit();
}

// The first column of the first row; -1 without a row.
inline std::int64_t ask_integer(sqlite3& connection, std::string_view sql) {
  Statement statement(connection, sql);
  Rows rows = statement.query();
  return rows.next() ? rows.integer(0) : -1;
}

// The first column of the first row; "none" without a row.
inline std::string ask_text(sqlite3& connection, std::string_view sql) {
  Statement statement(connection, sql);
  Rows rows = statement.query();
  return rows.next() ? std::string(rows.text(0)) : "none";
}

}  // namespace hearth::storage
