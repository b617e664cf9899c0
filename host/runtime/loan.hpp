#pragma once
// The database of a live agent, while another thread has it.

#include "base/clock.hpp"

#include <functional>
#include <optional>
#include <utility>
#include <vector>

namespace hearth::runtime {

// While it is out, the shard may not use the database: what needs it is postponed.
// Threads  The shard's.
class Loan {
 public:
  using Steps = std::vector<std::function<void()>>;

  [[nodiscard]] bool is_out() const { return since_.has_value(); }
  [[nodiscard]] std::optional<SteadyTime> since() const { return since_; }
  void begin(SteadyTime now) { since_ = now; }
  // The database is back. The caller runs these steps, in the order in which they were postponed.
  [[nodiscard]] Steps end() {
    since_.reset();
    return std::exchange(steps_, {});
  }
  // While it is out: keeps the step for end(). False: it is not out, and the caller goes on.
  template <class Step>
  bool postpone(Step&& step) {
    if (is_out()) steps_.emplace_back(std::forward<Step>(step));
    return is_out();
  }

 private:
  std::optional<SteadyTime> since_;
  Steps steps_;
};

}  // namespace hearth::runtime
