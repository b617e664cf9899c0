#pragma once
// Threads for code that must block, so that no shard does.

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace hearth::runtime {

// Promises   Jobs start in the order given. Each accepted job is called exactly once, also when the pool stops first.
// Bounded    At most `max_waiting` jobs wait; run() says no beyond that.
// Threads    run() from any thread; stop() once, from none of the pool's own.
class BlockingPool {
 public:
  // Threads are started when first needed, at most `threads`.
  BlockingPool(std::size_t threads, std::size_t max_waiting);
  ~BlockingPool();
  BlockingPool(const BlockingPool&) = delete;
  BlockingPool& operator=(const BlockingPool&) = delete;

  // `job(false)` on a thread of the pool; `job(true)` instead if the pool stops before: then only clean up.
  bool run(std::function<void(bool cancelled)> job);

  // Waits for the jobs that run, cancels those that wait. run() refuses from now on.
  void stop();

 private:
  void work();

  const std::size_t max_threads_;
  const std::size_t max_waiting_;
  std::mutex mutex_;
  std::condition_variable work_came_;
  // guarded by mutex_
  std::deque<std::function<void(bool)>> waiting_;
  std::vector<std::thread> threads_;
  std::size_t idle_ = 0;
  bool stopping_ = false;
};

}  // namespace hearth::runtime
