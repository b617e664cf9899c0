#include "runtime/timer_queue.hpp"

namespace hearth::runtime {

TimerId TimerQueue::add(SteadyTime due, std::function<void()> task) {
  const TimerId timer = ++last_;
  tasks_.emplace(Key{due, timer}, std::move(task));
  due_.emplace(timer, due);
  return timer;
}

void TimerQueue::cancel(TimerId timer) {
  const auto found = due_.find(timer);
  if (found == due_.end()) return;
  tasks_.erase(Key{found->second, timer});
  due_.erase(found);
}

std::optional<SteadyTime> TimerQueue::next_due() const {
  if (tasks_.empty()) return std::nullopt;
  return tasks_.begin()->first.first;
}

std::function<void()> TimerQueue::take_due(SteadyTime now, TimerId newest) {
  const auto first = tasks_.begin();
  if (first == tasks_.end() || first->first.first > now || first->first.second > newest) return {};
  std::function<void()> task = std::move(first->second);
  due_.erase(first->first.second);
  tasks_.erase(first);
  return task;
}

}  // namespace hearth::runtime
