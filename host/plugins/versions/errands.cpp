#include "plugins/versions/errands.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace hearth::plugins {

bool Errands::add(Errand errand) {
  const MutexLock lock(mutex_);
  const bool is_waited_for = errand.answer != nullptr;
  if (!is_waited_for && errand.sees_all() &&
      std::ranges::any_of(waiting_, [](const Errand& each) { return each.sees_all(); }))
    return true;  // the errand that waits will look later than now
  if (is_waited_for && waiting_.size() >= kMost) return false;
  waiting_.push_back(std::move(errand));
  news_.notify_one();
  return true;
}

void Errands::notice(const FileChanges& changes) {
  const MutexLock lock(mutex_);
  noticed_ = merged(noticed_, changes);
  news_.notify_one();
}

void Errands::stir() {
  const MutexLock lock(mutex_);
  is_stirred_ = true;
  news_.notify_one();
}

std::deque<Errand> Errands::stop() {
  const MutexLock lock(mutex_);
  is_stopped_ = true;
  news_.notify_one();
  return std::exchange(waiting_, {});
}

bool Errands::wait(std::optional<SteadyTime> until) {
  if (!until) {
    news_.wait(mutex_);
    return true;
  }
  const auto time = std::chrono::ceil<std::chrono::milliseconds>(*until - clock_.steady_now());
  return time.count() > 0 && news_.wait_for(mutex_, time);
}

std::optional<Errand> Errands::next(std::optional<SteadyTime> deadline) {
  const MutexLock lock(mutex_);
  while (!is_stopped_ && !is_stirred_ && waiting_.empty() && noticed_.none() && wait(deadline)) {
  }
  if (is_stopped_) return std::nullopt;
  is_stirred_ = false;
  Errand errand;
  if (!waiting_.empty()) {
    errand = std::move(waiting_.front());
    waiting_.pop_front();
  }
  if (errand.sees_all() || !errand.all) errand.changes = std::exchange(noticed_, {});
  return errand;
}

bool Errands::wait_for_news(SteadyTime until) {
  const MutexLock lock(mutex_);
  if (clock_.steady_now() >= until) return false;
  while (!is_stopped_ && !is_stirred_ && wait(until)) {
  }
  is_stirred_ = false;  // next() comes after each wait
  return !is_stopped_;
}

}  // namespace hearth::plugins
