#include "plugins/versions/loader_thread.hpp"

#include "base/assert.hpp"

#include <exception>
#include <utility>

#include <pthread.h>

namespace hearth::plugins {

LoaderThread::LoaderThread() : thread_([this] { serve(); }) {}

LoaderThread::~LoaderThread() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void LoaderThread::run(const std::function<void()>& task) {
  HEARTH_ASSERT(std::this_thread::get_id() != thread_.get_id(),
                "the loader's thread would wait for itself");
  const std::lock_guard turn(callers_);
  std::exception_ptr failure;
  {
    std::unique_lock lock(mutex_);
    task_ = &task;
    changed_.notify_all();
    changed_.wait(lock, [this] { return task_ == nullptr; });
    failure = std::exchange(failure_, nullptr);
  }
  if (failure) std::rethrow_exception(failure);
}

void LoaderThread::serve() {
  ::pthread_setname_np(::pthread_self(), "hearth-loader");
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return task_ != nullptr || stopping_; });
    if (task_ == nullptr) return;
    const std::function<void()>& task = *task_;
    lock.unlock();
    std::exception_ptr failure;
    try {
      task();
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    failure_ = failure;
    task_ = nullptr;
    changed_.notify_all();
  }
}

}  // namespace hearth::plugins
