#pragma once
// Whether an agent has fewer jobs of a kind than a limit, without reading each row.

#include "durable/jobs.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>

namespace hearth::durable {

// It holds an upper bound of the number. Only if the bound reaches the limit, it counts the rows.
//
// Threads    The agent's shard.  Lifetime  `jobs` outlives it.  Failure  StorageError.
class JobCount {
 public:
  JobCount(Jobs& jobs, JobKind kind) : jobs_(jobs), kind_(kind) {}

  // Whether the agent has fewer than `most` jobs of the kind.
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
  // An unknown number of rows was removed: the next below() that reaches the limit counts again.
  void removed_some() { is_exact_ = false; }

 private:
  Jobs& jobs_;
  const JobKind kind_;
  std::optional<std::size_t> size_;  // the number or an upper bound; nothing: not read yet
  bool is_exact_ = false;
};

}  // namespace hearth::durable
