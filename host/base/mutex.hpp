#pragma once
// std::mutex with annotations, which libstdc++'s lacks. The build fails where code uses a member
// that is GUARDED_BY a mutex without holding the mutex.

#include "base/thread_annotations.hpp"

#include <chrono>
#include <condition_variable>
#include <mutex>

namespace hearth {

class CAPABILITY("mutex") Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void lock() ACQUIRE() { mutex_.lock(); }
  void unlock() RELEASE() { mutex_.unlock(); }

  // For Condition only: the analysis does not see locking through it.
  [[nodiscard]] std::mutex& unchecked() { return mutex_; }

 private:
  std::mutex mutex_;
};

// Holds a mutex from here to the end of its block.
class SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
  ~MutexLock() RELEASE() { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

// A condition variable. A wait releases the mutex, and takes it again before it returns.
//   There is no predicate: the analysis does not know what the caller of a lambda holds. A wait may
//   end without a notification, so wait in a loop:
//
//     while (!is_over_) news_.wait(mutex_);
class Condition {
 public:
  void wait(Mutex& mutex) REQUIRES(mutex) {
    Held held(mutex);
    condition_.wait(held.lock);
  }

  // False: timeout.
  [[nodiscard]] bool wait_until(Mutex& mutex, std::chrono::steady_clock::time_point end)
      REQUIRES(mutex) {
    Held held(mutex);
    return condition_.wait_until(held.lock, end) == std::cv_status::no_timeout;
  }

  [[nodiscard]] bool wait_for(Mutex& mutex, std::chrono::milliseconds time) REQUIRES(mutex) {
    return wait_until(mutex, std::chrono::steady_clock::now() + time);
  }

  void notify_one() noexcept { condition_.notify_one(); }
  void notify_all() noexcept { condition_.notify_all(); }

 private:
  // Lends the mutex, which the caller holds, to std::condition_variable. The caller still holds it
  // afterwards.
  struct Held {
    explicit Held(Mutex& mutex) : lock(mutex.unchecked(), std::adopt_lock) {}
    ~Held() { lock.release(); }
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;
    std::unique_lock<std::mutex> lock;
  };

  std::condition_variable condition_;
};

}  // namespace hearth
