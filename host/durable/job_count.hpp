#pragma once
// How many jobs of a kind an agent has, for a limit: known without a look at each row.

#include "durable/jobs.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>

namespace hearth::durable {

// It holds an upper bound, and counts the rows once only when that bound reaches the limit.
//
// Threads    The agent's shard.  Lifetime  `jobs` outlives it.  Failure  StorageError.
class JobCount {
 public:
  JobCount(Jobs& jobs, JobKind kind) : jobs_(jobs), kind_(kind) {}

  // Whether there are fewer than `most`.
  [[nodiscard]] bool below(std::size_t most) {
    if (!size_) size_ = jobs_.count_bound(kind_);
    if (*size_ < most || is_exact_) return *size_ < most;
    size_ = jobs_.count(kind_);
    is_exact_ = true;
    return *size_ < most;
  }
  void added() {
    if (size_) ++*size_;
  }
  void removed(std::size_t count) {
    if (size_) *size_ -= std::min(*size_, count);
  }
  // Some rows have gone, and how many is not known.
  void removed_some() { is_exact_ = false; }

 private:
  Jobs& jobs_;
  const JobKind kind_;
  std::optional<std::size_t> size_;  // or an upper bound; nothing: not known yet
  bool is_exact_ = false;
};

}  // namespace hearth::durable
