#include "runtime/blocking_pool.hpp"

#include <algorithm>
#include <system_error>
#include <utility>

#include <pthread.h>

namespace hearth::runtime {
namespace {

void take_one(std::map<std::string, std::size_t>& counts, const std::string& owner) {
  const auto found = counts.find(owner);
  if (--found->second == 0) counts.erase(found);
}

}  // namespace

BlockingPool::BlockingPool(std::size_t threads, std::size_t max_waiting)
    : max_threads_(threads), max_waiting_(max_waiting) {}

BlockingPool::~BlockingPool() {
  stop();
}

bool BlockingPool::run(Job job, const std::string& owner) {
  const MutexLock lock(mutex_);
  if (stopping_ || !may_wait(owner)) return false;
  waiting_.push_back(Waiting{std::move(job), owner});
  if (!owner.empty()) ++waiting_of_[owner];
  if (idle_ < waiting_.size() && threads_.size() < max_threads_) {
    try {
      threads_.emplace_back([this] { work(); });
    } catch (
        const std::system_error&) {  // the system has no thread left: the pool's threads must do
      if (threads_.empty()) {
        waiting_.pop_back();
        if (!owner.empty()) take_one(waiting_of_, owner);
        return false;
      }
    }
  }
  work_came_.notify_one();
  return true;
}

bool BlockingPool::run_next() {
  Job job;
  {
    const MutexLock lock(mutex_);
    if (waiting_.empty()) return false;
    job = std::move(waiting_.front().job);
    if (!waiting_.front().owner.empty()) take_one(waiting_of_, waiting_.front().owner);
    waiting_.pop_front();
  }
  job(false);
  return true;
}

void BlockingPool::stop() {
  std::vector<std::thread> threads;
  std::deque<Waiting> waiting;
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
    threads.swap(threads_);
    waiting.swap(waiting_);
  }
  work_came_.notify_all();
  for (const Waiting& each : waiting) each.job(true);
  for (std::thread& thread : threads) thread.join();
}

bool BlockingPool::may_wait(const std::string& owner) const {
  if (waiting_.size() >= max_waiting_) return false;
  const auto its = waiting_of_.find(owner);
  return its == waiting_of_.end() || its->second < max_waiting_ - max_waiting_ / 4;
}

std::optional<std::size_t> BlockingPool::next() const {
  const std::size_t most = std::max<std::size_t>(1, max_threads_ - 1);
  for (std::size_t at = 0; at < waiting_.size(); ++at) {
    const auto its = running_of_.find(waiting_[at].owner);
    if (its == running_of_.end() || its->second < most) return at;
  }
  return std::nullopt;
}

void BlockingPool::work() {
  ::pthread_setname_np(::pthread_self(), "hearth-blocking");  // else its first caller's name
  mutex_.lock();
  for (;;) {
    ++idle_;
    std::optional<std::size_t> at = next();
    for (; !stopping_ && !at; at = next()) work_came_.wait(mutex_);
    --idle_;
    if (stopping_) break;
    const Waiting each = std::move(waiting_[*at]);
    waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(*at));
    if (!each.owner.empty()) {
      take_one(waiting_of_, each.owner);
      ++running_of_[each.owner];
    }
    mutex_.unlock();
    each.job(false);
    mutex_.lock();
    if (!each.owner.empty()) take_one(running_of_, each.owner);
  }
  mutex_.unlock();
}

}  // namespace hearth::runtime
