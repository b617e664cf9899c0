#include "runtime/paced_steps.hpp"

#include "base/assert.hpp"

#include <algorithm>
#include <utility>

namespace hearth::runtime {

PacedSteps::PacedSteps(ShardLoop& loop, int share) : loop_(loop), share_(share) {
  HEARTH_ASSERT(share >= 1 && share <= 100, "a share is a percentage");
}

void PacedSteps::add(std::function<void()> step) {
  steps_.push_back(std::move(step));
  schedule();
}

void PacedSteps::schedule() {
  if (scheduled_ || steps_.empty()) return;
  scheduled_ = true;
  auto task = [alive = alive_, this] {
    if (*alive) run_one();
  };
  if (not_before_ <= loop_.clock().steady_now()) {
    loop_.post(std::move(task));
  } else {
    loop_.call_at(not_before_, std::move(task));
  }
}

void PacedSteps::run_one() {
  const std::function<void()> step = std::move(steps_.front());
  steps_.pop_front();
  const SteadyTime began = loop_.clock().steady_now();
  step();
  const SteadyTime ended = loop_.clock().steady_now();
  if (std::exchange(clients_seen_, clients_) != clients_) busy_until_ = ended + kBusyFor;
  not_before_ = ended;
  if (ended < busy_until_)
    not_before_ +=
        std::min<SteadyTime::duration>((ended - began) * (100 - share_) / share_, kMaxPause);
  scheduled_ = false;
  schedule();
}

}  // namespace hearth::runtime
