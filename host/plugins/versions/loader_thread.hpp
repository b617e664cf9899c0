#pragma once
// The one thread on which libraries are loaded and unloaded.

#include "base/mutex.hpp"

#include <exception>
#include <functional>
#include <thread>

namespace hearth::plugins {

// Constructors and destructors of libraries, init() and deinit() run only here. The ABI promises
// it: code with thread-local state finds the same thread again.
//
// Threads   run() from any thread but this one; callers take turns.
// Lifetime  The destructor waits for the thread. No run() may be in progress then.
class LoaderThread {
 public:
  LoaderThread();
  ~LoaderThread();
  LoaderThread(const LoaderThread&) = delete;
  LoaderThread& operator=(const LoaderThread&) = delete;

  // Runs `task` on the thread and waits for it. run() throws what the task throws.
  void run(const std::function<void()>& task);

 private:
  void serve();
  // Waits for a task. Null: no more tasks will come.
  [[nodiscard]] const std::function<void()>* next_task();

  Mutex callers_;  // held by the caller whose turn it is

  Mutex mutex_;
  Condition changed_;
  // Of the waiting caller.
  const std::function<void()>* task_ GUARDED_BY(mutex_) = nullptr;
  std::exception_ptr failure_ GUARDED_BY(mutex_);
  bool stopping_ GUARDED_BY(mutex_) = false;

  std::thread thread_;  // last: it uses the fields above
};

}  // namespace hearth::plugins
