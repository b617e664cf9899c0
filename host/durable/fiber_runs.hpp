#pragma once
// The fibers whose work runs in this instance.

#include "durable/jobs.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace hearth::durable {

// Names a fiber whose work runs in this instance. Never reused.
using FiberHandle = std::uint64_t;

// The row of a fiber in its agent's database: WorkMark::row.
using FiberRow = std::int64_t;
inline constexpr FiberRow kNoFiber = 0;

// In memory; the jobs are as on disk.
//
// Threads   The agent's shard.
class FiberRuns {
 public:
  FiberHandle add(Job job, std::int64_t now_ms) {
    const FiberHandle handle = ++last_handle_;
    handles_.emplace(job.id, handle);
    job.runs_since_ms = now_ms;
    running_.emplace(handle, std::move(job));
    return handle;
  }
  // Forgets the run of this fiber; does nothing if it does not run.
  void end(std::string_view id) {
    const auto handle = handles_.find(id);
    if (handle == handles_.end()) return;
    running_.erase(handle->second);
    handles_.erase(handle);
  }

  // Null: no fiber runs with this handle. Valid until it ends.
  [[nodiscard]] const Job* find_running(FiberHandle fiber) const {
    const auto found = running_.find(fiber);
    return found == running_.end() ? nullptr : &found->second;
  }
  // kNoFiber: it does not run.
  [[nodiscard]] FiberRow row_of(FiberHandle fiber) const {
    const Job* const job = find_running(fiber);
    return job == nullptr ? kNoFiber : job->seq;
  }
  [[nodiscard]] FiberRow row_of(std::string_view id) const {
    const auto handle = handles_.find(id);
    return handle == handles_.end() ? kNoFiber : row_of(handle->second);
  }
  [[nodiscard]] std::map<FiberHandle, Job>& all() { return running_; }
  [[nodiscard]] std::size_t size() const { return running_.size(); }
  // When the oldest run began, Unix milliseconds. None: no fiber runs.
  [[nodiscard]] std::optional<std::int64_t> since_ms() const {
    std::optional<std::int64_t> oldest;
    for (const auto& [handle, job] : running_)
      oldest = earliest(oldest, std::optional(job.runs_since_ms));
    return oldest;
  }

 private:
  std::map<FiberHandle, Job> running_;
  std::map<std::string, FiberHandle, std::less<>> handles_;  // keys of running_, by id
  FiberHandle last_handle_ = 0;
};

}  // namespace hearth::durable
