#include "runtime/paced_steps.hpp"

#include "base/assert.hpp"

#include <algorithm>
#include <utility>

namespace hearth::runtime {

PacedSteps::PacedSteps(ShardLoop& loop, int recovery_share) : loop_(loop) {
  HEARTH_ASSERT(recovery_share >= 1 && recovery_share <= 100, "a share is a percentage");
  lines_[static_cast<std::size_t>(StepKind::kRecovery)].share = recovery_share;
}

void PacedSteps::add(StepKind kind, std::function<void()> step) {
  Line& line = lines_[static_cast<std::size_t>(kind)];
  line.steps.push_back(std::move(step));
  schedule(line);
}

std::size_t PacedSteps::waiting() const {
  std::size_t steps = 0;
  for (const Line& line : lines_) steps += line.steps.size();
  return steps;
}

void PacedSteps::schedule(Line& line) {
  if (line.scheduled || line.steps.empty()) return;
  line.scheduled = true;
  auto task = [alive = alive_, this, &line] {
    if (*alive) run_one(line);
  };
  if (line.not_before <= loop_.clock().steady_now()) {
    loop_.post(std::move(task));
  } else {
    loop_.call_at(line.not_before, std::move(task));
  }
}

void PacedSteps::run_one(Line& line) {
  const std::function<void()> step = std::move(line.steps.front());
  line.steps.pop_front();
  const SteadyTime began = loop_.clock().steady_now();
  step();
  const SteadyTime ended = loop_.clock().steady_now();
  if (std::exchange(line.clients_seen, clients_) != clients_) line.busy_until = ended + kBusyFor;
  line.not_before = ended;
  if (ended < line.busy_until)
    line.not_before += std::min<SteadyTime::duration>(
        (ended - began) * (100 - line.share) / line.share, kMaxPause);
  line.scheduled = false;
  schedule(line);
}

}  // namespace hearth::runtime
