#pragma once
// The work of SQLite, in instructions of its virtual machine: the same on every machine, every
// time.

#include "storage/agent_database.hpp"

#include <sqlite3.h>

#include <cstdint>

namespace hearth::testing {

// While it lives, counts the instructions on the database's connection.
class CountedSteps {
 public:
  explicit CountedSteps(storage::AgentDatabase& database) : connection_(database.connection()) {
    sqlite3_progress_handler(&connection_, 1, &CountedSteps::step, this);
  }
  ~CountedSteps() { sqlite3_progress_handler(&connection_, 0, nullptr, nullptr); }
  CountedSteps(const CountedSteps&) = delete;
  CountedSteps& operator=(const CountedSteps&) = delete;

  [[nodiscard]] std::uint64_t count() const { return count_; }

 private:
  static int step(void* self) {
    ++static_cast<CountedSteps*>(self)->count_;
    return 0;
  }

  sqlite3& connection_;
  std::uint64_t count_ = 0;
};

// How often kept statements were compiled again since the last call. A table that was made or
// dropped is a reason; a bound value is none.
inline int compiled_again(storage::AgentDatabase& database) {
  int times = 0;
  for (sqlite3_stmt* each = nullptr;
       (each = sqlite3_next_stmt(&database.connection(), each)) != nullptr;)
    times += sqlite3_stmt_status(each, SQLITE_STMTSTATUS_REPREPARE, 1);
  return times;
}

// The statements that the connection keeps now.
inline int kept_statements(storage::AgentDatabase& database) {
  int kept = 0;
  for (sqlite3_stmt* each = nullptr;
       (each = sqlite3_next_stmt(&database.connection(), each)) != nullptr;)
    ++kept;
  return kept;
}

}  // namespace hearth::testing
