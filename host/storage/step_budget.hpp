#pragma once
// What a step of a plugin's statement may still spend, for the functions that SQLite calls in it.

#include "base/clock.hpp"

#include <cstddef>

namespace hearth::storage {

// FTS5 reads a query, and begins to look for all its tokens, within one instruction. Each takes up
// to a megabyte and some milliseconds in the largest row.
inline constexpr std::size_t kMostQueryTokens = 256;

// SQLite looks at the clock between instructions and hands no one's data to a tokenizer, so what
// runs within an instruction asks the thread: while a budget lives it is its thread's, and outside
// of one nothing is bounded.
//
// Threads   That of its constructor. One at a time on a thread.
// Lifetime  The clock outlives it.
class StepBudget {
 public:
  // So much work, about a byte of text each, is done between two looks at the clock.
  static constexpr std::size_t kWorkPerLook = std::size_t{64} << 10;

  StepBudget(const Clock& clock, SteadyTime deadline);
  ~StepBudget();
  StepBudget(const StepBudget&) = delete;
  StepBudget& operator=(const StepBudget&) = delete;

  // Null: this thread runs no step.
  static StepBudget* current() noexcept;

  // Whether the thread's step may go on to this work. If not, SQLITE_INTERRUPT is the answer.
  static bool has_time_for(std::size_t work);

  [[nodiscard]] bool is_over() const;

  // Counts one token of a full-text query; false: it is one too many.
  bool take_query_token() noexcept;
  // SQLite is between two instructions, so that what was counted belongs to a query that was read.
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
