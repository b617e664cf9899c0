#include "runtime/class_rollout.hpp"

#include "runtime/runtime.hpp"

#include <algorithm>
#include <utility>

namespace hearth::runtime {

std::string_view to_string(RolloutState state) noexcept {
  switch (state) {
    case RolloutState::kTrying: return "trying";
    case RolloutState::kMoving: return "moving";
    case RolloutState::kDone: return "done";
    case RolloutState::kRolledBack: return "rolled_back";
  }
  return "";
}

ClassRollout::ClassRollout(Runtime& runtime, std::shared_ptr<const ServedClass> before,
                           std::shared_ptr<const ServedClass> next, RolloutSettings settings,
                           const Clock& clock)
    : runtime_(runtime),
      before_(std::move(before)),
      next_(std::move(next)),
      settings_(settings),
      clock_(clock),
      began_(clock.steady_now()) {
  runtime_.classes().put(next_);
  runtime_.class_is_back(next_->segment);
  if (before_ == nullptr) {
    state_ = RolloutState::kDone;
  } else {
    begin_trial();
  }
}

void ClassRollout::begin_trial() {
  if (settings_.trial_agents == 0) return move_others();
  tried_ = runtime_.try_version(before_->agent_class, settings_.trial_agents);
  // Nobody lives who could try: the next ones that are woken have no other version to fall back from.
  if (tried_ == 0) move_others();
}

RolloutState ClassRollout::look() {
  if (state_ == RolloutState::kTrying) judge();
  if (state_ == RolloutState::kMoving) {
    const bool late = clock_.steady_now() - moving_since_ >= settings_.drain_deadline;
    if (settings_.drain && late && !std::exchange(forced_, true))
      runtime_.leave_version(before_->agent_class, EvictReason::kCodeUpdate, false);
    // The old version is kept until this is dropped: another class of the library may still fail, and take this one with it.
    if (runtime_.count_agents(before_->agent_class) == 0) state_ = RolloutState::kDone;
  }
  return state_;
}

void ClassRollout::judge() {
  const std::size_t failed = next_->starts->failed;
  const std::size_t seen = next_->starts->started + failed;
  const bool too_many = failed * 100 > std::max(tried_, seen) * settings_.max_failed_percent;
  const bool over = clock_.steady_now() - began_ >= settings_.trial_time;
  if (too_many && failed > 0) {
    roll_back(std::to_string(failed) + " of the first " + std::to_string(std::max(tried_, seen)) +
              " agents could not start on it");
  } else if (seen >= tried_ || over) {
    move_others();
  }
}

void ClassRollout::move_others() {
  state_ = RolloutState::kMoving;
  moving_since_ = clock_.steady_now();
  runtime_.leave_version(before_->agent_class, EvictReason::kCodeUpdate, settings_.drain);
}

void ClassRollout::hurry() {
  if (state_ == RolloutState::kTrying) move_others();
  if (state_ == RolloutState::kMoving)
    runtime_.leave_version(before_->agent_class, EvictReason::kCodeUpdate, false);
}

void ClassRollout::roll_back(std::string why) {
  if (before_ == nullptr || state_ == RolloutState::kRolledBack) return;
  reason_ = std::move(why);
  state_ = RolloutState::kRolledBack;
  runtime_.classes().put(before_);
  runtime_.class_is_back(before_->segment);
  runtime_.leave_version(next_->agent_class, EvictReason::kCodeUpdate, false);
}

}  // namespace hearth::runtime
