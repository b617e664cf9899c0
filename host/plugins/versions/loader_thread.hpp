#pragma once
// The one thread on which libraries are loaded and unloaded.

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

namespace hearth::plugins {

// Constructors and destructors of libraries, init() and deinit() run here and nowhere else: the ABI
// promises it, and code that keeps something for each thread finds the same thread again.
//
// Threads   run() from any thread but this one; callers take turns.
// Lifetime  The destructor waits for the thread; nothing may be running.
class LoaderThread {
 public:
  LoaderThread();
  ~LoaderThread();
  LoaderThread(const LoaderThread&) = delete;
  LoaderThread& operator=(const LoaderThread&) = delete;

  // Runs `task` on the thread and waits for it. An exception of the task comes out of run().
  void run(const std::function<void()>& task);

 private:
  void serve();

  std::mutex callers_;  // held by the caller whose turn it is

  std::mutex mutex_;  // protects the fields below, up to the thread
  std::condition_variable changed_;
  const std::function<void()>* task_ = nullptr;  // the caller's, while it waits
  std::exception_ptr failure_;
  bool stopping_ = false;

  std::thread thread_;  // last: it uses the fields above
};

}  // namespace hearth::plugins
