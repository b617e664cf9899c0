#pragma once
// Threads for code that must block, so that no shard does.

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
//  P1 Once     Each accepted job is called exactly once, also when the pool stops first. Jobs of
//              one owner start in the order given.
//  P2 Shared   An owner whose jobs hang holds neither all threads (one is left, of several) nor all
//              places to wait (a quarter is left): those of others go on. Jobs without an owner may
//              have all.
// Bounded    At most `max_waiting` jobs wait; run() says no beyond that.
// Threads    run() from any thread; stop() once, from none of the pool's own.
class BlockingPool {
 public:
  // Threads are started when first needed, at most `threads`.
  BlockingPool(std::size_t threads, std::size_t max_waiting);
  ~BlockingPool();
  BlockingPool(const BlockingPool&) = delete;
  BlockingPool& operator=(const BlockingPool&) = delete;

  using Job = std::function<void(bool cancelled)>;

  // `job(false)` on a thread of the pool; `job(true)` instead if the pool stops before: then only
  // clean up. `owner`: of the code, in any words; empty: it has none.
  bool run(Job job, const std::string& owner = {});

  // Waits for the jobs that run, cancels those that wait. run() refuses from now on.
  void stop();

 private:
  struct Waiting {
    Job job;
    std::string owner;
  };

  void work();
  // The first that may start now; none if there is none.
  [[nodiscard]] std::optional<std::size_t> next() const REQUIRES(mutex_);
  [[nodiscard]] bool may_wait(const std::string& owner) const REQUIRES(mutex_);

  const std::size_t max_threads_;
  const std::size_t max_waiting_;
  Mutex mutex_;
  Condition work_came_;
  std::deque<Waiting> waiting_ GUARDED_BY(mutex_);
  // By owner; none without one.
  std::map<std::string, std::size_t> waiting_of_ GUARDED_BY(mutex_);
  std::map<std::string, std::size_t> running_of_ GUARDED_BY(mutex_);
  std::vector<std::thread> threads_ GUARDED_BY(mutex_);
  std::size_t idle_ GUARDED_BY(mutex_) = 0;
  bool stopping_ GUARDED_BY(mutex_) = false;
};

}  // namespace hearth::runtime
