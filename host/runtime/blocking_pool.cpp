#include "runtime/blocking_pool.hpp"

#include <system_error>
#include <utility>

namespace hearth::runtime {

BlockingPool::BlockingPool(std::size_t threads, std::size_t max_waiting)
    : max_threads_(threads), max_waiting_(max_waiting) {}

BlockingPool::~BlockingPool() {
  stop();
}

bool BlockingPool::run(std::function<void(bool)> job) {
  const std::scoped_lock lock(mutex_);
  if (stopping_ || waiting_.size() >= max_waiting_) return false;
  waiting_.push_back(std::move(job));
  if (idle_ < waiting_.size() && threads_.size() < max_threads_) {
    try {
      threads_.emplace_back([this] { work(); });
    } catch (
        const std::system_error&) {  // the system has no thread to give: those there are must do
      if (threads_.empty()) {
        waiting_.pop_back();
        return false;
      }
    }
  }
  work_came_.notify_one();
  return true;
}

void BlockingPool::stop() {
  std::vector<std::thread> threads;
  std::deque<std::function<void(bool)>> waiting;
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
    threads.swap(threads_);
    waiting.swap(waiting_);
  }
  work_came_.notify_all();
  for (const auto& job : waiting) job(true);
  for (std::thread& thread : threads) thread.join();
}

void BlockingPool::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    ++idle_;
    work_came_.wait(lock, [this] { return stopping_ || !waiting_.empty(); });
    --idle_;
    if (waiting_.empty()) return;
    const std::function<void(bool)> job = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    job(false);
    lock.lock();
  }
}

}  // namespace hearth::runtime
