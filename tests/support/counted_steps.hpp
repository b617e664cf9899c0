#pragma once
// How much work SQLite has: instructions of its virtual machine, which are the same on every
// machine and at every time.

#include "storage/agent_database.hpp"

#include <sqlite3.h>

#include <cstdint>

namespace hearth::testing {

// Counts what is done on the database's connection while it lives.
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

}  // namespace hearth::testing
