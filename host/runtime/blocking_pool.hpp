#pragma once
// Threads for code that must block, so that no shard blocks.

#include "base/mutex.hpp"

#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace hearth::runtime {

// Promises
//  P1 Once    Each accepted job is called exactly once, even if the pool stops first.
//  P2 Shared  An owner whose jobs hang leaves other owners a thread, if the pool has several, and a
//             quarter of the waiting places.
//
// P1: Jobs of one owner start in the order given.
// P2: Jobs without an owner may use all threads and places.
//
// Bounded    At most `max_waiting` jobs wait; then run() returns false.
// Threads    run() from any thread; stop() once, not from a thread of the pool.
class BlockingPool {
 public:
  // Starts at most `threads` threads, each when first needed. 0: jobs run in run_next().
  BlockingPool(std::size_t threads, std::size_t max_waiting);
  ~BlockingPool();
  BlockingPool(const BlockingPool&) = delete;
  BlockingPool& operator=(const BlockingPool&) = delete;

  using Job = std::function<void(bool cancelled)>;

  // Calls `job(false)` on a thread of the pool, or `job(true)` if the pool stops first: then the
  // job only cleans up. `owner`: names the code that owns the job; empty: no owner.
  bool run(Job job, const std::string& owner = {});

  // Runs the first waiting job on this thread. False: none waits.
  bool run_next();

  // Waits for the running jobs and cancels the waiting ones. From now on run() returns false.
  void stop();

 private:
  struct Waiting {
    Job job;
    std::string owner;
  };

  void work();
  // The first job that may start now; nothing if there is none.
  [[nodiscard]] std::optional<std::size_t> next() const REQUIRES(mutex_);
  [[nodiscard]] bool may_wait(const std::string& owner) const REQUIRES(mutex_);

  const std::size_t max_threads_;
  const std::size_t max_waiting_;
  Mutex mutex_;
  Condition work_came_;
  std::deque<Waiting> waiting_ GUARDED_BY(mutex_);
  // By owner. Jobs without an owner are not counted.
  std::map<std::string, std::size_t> waiting_of_ GUARDED_BY(mutex_);
  std::map<std::string, std::size_t> running_of_ GUARDED_BY(mutex_);
  std::vector<std::thread> threads_ GUARDED_BY(mutex_);
  std::size_t idle_ GUARDED_BY(mutex_) = 0;
  bool stopping_ GUARDED_BY(mutex_) = false;
};

}  // namespace hearth::runtime
