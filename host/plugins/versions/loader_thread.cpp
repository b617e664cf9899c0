#include "plugins/versions/loader_thread.hpp"

#include "base/assert.hpp"

#include <utility>

#include <pthread.h>

namespace hearth::plugins {

LoaderThread::LoaderThread() : thread_([this] { serve(); }) {}

LoaderThread::~LoaderThread() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void LoaderThread::run(const std::function<void()>& task) {
  HEARTH_ASSERT(std::this_thread::get_id() != thread_.get_id(),
                "the loader's thread would wait for itself");
  const MutexLock turn(callers_);
  std::exception_ptr failure;
  {
    const MutexLock lock(mutex_);
    task_ = &task;
    changed_.notify_all();
    while (task_ != nullptr) changed_.wait(mutex_);
    failure = std::exchange(failure_, nullptr);
  }
  if (failure) std::rethrow_exception(failure);
}

const std::function<void()>* LoaderThread::next_task() {
  const MutexLock lock(mutex_);
  while (task_ == nullptr && !stopping_) changed_.wait(mutex_);
  return task_;
}

void LoaderThread::serve() {
  ::pthread_setname_np(::pthread_self(), "hearth-loader");
  while (const std::function<void()>* const task = next_task()) {
    std::exception_ptr failure;
    try {
      (*task)();
    } catch (...) {
      failure = std::current_exception();
    }
    const MutexLock lock(mutex_);
    failure_ = failure;
    task_ = nullptr;
    changed_.notify_all();
  }
}

}  // namespace hearth::plugins
