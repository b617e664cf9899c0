#include "base/mutex.hpp"

class Queue {
 public:
  void put() {
    const hearth::MutexLock lock(mutex_);
    add_locked();
    came_.notify_one();
  }
  int take() {
    while (size_ == 0) came_.wait(mutex_);
    return --size_;
  }

 private:
  void add_locked() REQUIRES(mutex_) { ++size_; }

  hearth::Mutex mutex_;
  hearth::Condition came_;
  int size_ GUARDED_BY(mutex_) = 0;
};

void use(Queue& queue) {
  queue.put();
  queue.take();
}
