#pragma once
// The time and tokens left for one step of a plugin's statement, for functions that SQLite calls.

#include "base/clock.hpp"

#include <cstddef>

namespace hearth::storage {

// The most tokens of a full-text query. FTS5 reads a query, and begins to search for all its
// tokens, within one instruction. Each token takes up to a megabyte and some milliseconds in the
// largest row.
inline constexpr std::size_t kMostQueryTokens = 256;

// SQLite checks the time only between instructions, and passes no user data to a tokenizer. So code
// that runs within an instruction finds the budget through its thread, with current(). A thread
// without a budget is not bounded.
//
// Threads   The thread of its constructor. One budget at a time on a thread.
// Lifetime  The clock outlives it.
class StepBudget {
 public:
  // The units of work, about a byte of text each, between two looks at the clock.
  static constexpr std::size_t kWorkPerLook = std::size_t{64} << 10;

  StepBudget(const Clock& clock, SteadyTime deadline);
  ~StepBudget();
  StepBudget(const StepBudget&) = delete;
  StepBudget& operator=(const StepBudget&) = delete;

  // The budget of this thread; null: it runs no step.
  static StepBudget* current() noexcept;

  // Whether the thread's step has time for this work. If not, return SQLITE_INTERRUPT.
  static bool has_time_for(std::size_t work);

  [[nodiscard]] bool is_over() const;

  // Counts one token of a full-text query; false: one too many.
  bool take_query_token() noexcept;
  // Call it when SQLite is between two instructions: the counted tokens belong to an earlier query.
  void end_query() noexcept { query_tokens_ = 0; }
  [[nodiscard]] bool refused_query() const noexcept { return refused_query_; }

 private:
  const Clock& clock_;
  const SteadyTime deadline_;
  std::size_t work_ = 0;  // since the last look
  std::size_t query_tokens_ = 0;
  bool refused_query_ = false;
};

}  // namespace hearth::storage
