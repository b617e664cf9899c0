#include "base/turn_end.hpp"

#include <algorithm>
#include <utility>

namespace hearth {

TurnEnd::TurnEnd(std::function<void(std::function<void()>)> post) : post_(std::move(post)) {}

void TurnEnd::add(Phase phase, Step step) {
  waiting_.at(static_cast<std::size_t>(phase)).push_back({std::move(step)});
  plan();
}

void TurnEnd::plan() {
  if (std::exchange(planned_, true)) return;
  post_([this] { run(); });
}

void TurnEnd::run() {
  // planned_ stays set: a step that is added for a later phase needs no other turn.
  for (std::vector<Waiting>& phase : waiting_) {
    for (Waiting& each : std::exchange(phase, {})) {
      const bool is_last = ++each.turns >= kMostTurns;
      if (!each.step(is_last) && !is_last) phase.push_back(std::move(each));
    }
  }
  planned_ = false;
  if (std::ranges::any_of(waiting_, [](const auto& phase) { return !phase.empty(); })) plan();
}

}  // namespace hearth
