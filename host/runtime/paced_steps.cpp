#include "runtime/paced_steps.hpp"

#include "base/assert.hpp"

#include <algorithm>
#include <utility>

namespace hearth::runtime {
namespace {

// After a step that took `step`, until it has had `share` percent of the time.
SteadyTime::duration pause_after(SteadyTime::duration step, int share,
                                 SteadyTime::duration at_most) {
  return std::min(step * (100 - share) / share, at_most);
}

}  // namespace

PacedSteps::PacedSteps(ShardLoop& loop, int recovery_share) : loop_(loop) {
  HEARTH_ASSERT(recovery_share >= 1 && recovery_share <= 100, "a share is a percentage");
  lines_[static_cast<std::size_t>(StepKind::kRecovery)].share = recovery_share;
}

void PacedSteps::add(StepKind kind, std::function<void()> step) {
  lines_[static_cast<std::size_t>(kind)].steps.push_back(std::move(step));
  schedule();
}

std::size_t PacedSteps::waiting() const {
  std::size_t steps = 0;
  for (const Line& line : lines_) steps += line.steps.size();
  return steps;
}

PacedSteps::Line* PacedSteps::next_line() {
  Line* next = nullptr;
  for (Line& line : lines_)
    if (!line.steps.empty() && (next == nullptr || std::pair(line.not_before, line.last_run) <
                                                       std::pair(next->not_before, next->last_run)))
      next = &line;
  return next;
}

void PacedSteps::schedule() {
  const Line* const line = next_line();
  if (line == nullptr) return;
  const SteadyTime due = std::max(line->not_before, not_before_);
  if (scheduled_ && *scheduled_ <= due) return;
  scheduled_ = due;
  auto task = [alive = alive_, this, number = ++newest_task_] {
    if (*alive && number == newest_task_) run_one();
  };
  if (due <= loop_.clock().steady_now()) {
    loop_.post(std::move(task));
  } else {
    loop_.call_at(due, std::move(task));
  }
}

void PacedSteps::run_one() {
  Line& line = *next_line();
  const std::function<void()> step = std::move(line.steps.front());
  line.steps.pop_front();
  line.last_run = ++run_;
  const SteadyTime began = loop_.clock().steady_now();
  step();
  const SteadyTime ended = loop_.clock().steady_now();
  if (std::exchange(clients_seen_, clients_) != clients_) busy_until_ = ended + kBusyFor;
  line.not_before = not_before_ = ended;
  if (ended < busy_until_) {
    const SteadyTime::duration took = ended - began;
    line.not_before += pause_after(took, line.share, kMaxPause);
    not_before_ += pause_after(took, std::max(kTogether, lines_.back().share), kMaxPauseOfAll);
  }
  scheduled_.reset();
  schedule();
}

}  // namespace hearth::runtime
