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
  trial_ = runtime_.try_version(before_, settings_.trial_agents);
  const bool all_answered = trial_->answers.wait_for(settings_.patience);
  // Nobody lives who could try: the next ones that are woken have no other version to fall back from.
  if (all_answered && tried() == 0 && settings_.awaited == 0) move_others();
}

std::size_t ClassRollout::tried() const {
  return trial_ ? trial_->tried.load() : 0;
}

std::vector<unsigned> ClassRollout::silent_shards() const {
  if (leaving_) return leaving_->missing();
  return trial_ ? trial_->answers.missing() : std::vector<unsigned>{};
}

void ClassRollout::leave(bool when_idle) {
  if (trial_) trial_->places = 0;
  leaving_ = runtime_.leave_version(before_, EvictReason::kCodeUpdate, when_idle);
}

RolloutState ClassRollout::look() {
  if (state_ == RolloutState::kTrying) judge();
  if (state_ == RolloutState::kMoving) {
    const bool late = clock_.steady_now() - moving_since_ >= settings_.drain_deadline;
    if (settings_.drain && late && !std::exchange(forced_, true)) leave(false);
    // The old version is kept until this is dropped: another class of the library may still fail, and take this one with it.
    // Answers first: a shard that has not answered may just be waking an agent on the old version.
    if (leaving_->complete() && before_->starts->agents == 0) state_ = RolloutState::kDone;
  }
  return state_;
}

void ClassRollout::judge() {
  const std::size_t failed = next_->starts->failed;
  const std::size_t seen = next_->starts->started + failed;
  const std::size_t expected = std::max({tried(), seen, settings_.awaited});
  const bool too_many = failed * 100 > expected * settings_.max_failed_percent;
  const bool over = clock_.steady_now() - began_ >= settings_.trial_time;
  if (too_many && failed > 0) {
    roll_back(std::to_string(failed) + " of the first " + std::to_string(expected) +
              " agents could not start on it");
  } else if ((seen >= expected && trial_->answers.complete()) || over) {
    move_others();
  }
}

void ClassRollout::move_others() {
  state_ = RolloutState::kMoving;
  moving_since_ = clock_.steady_now();
  leave(settings_.drain);
}

void ClassRollout::hurry() {
  if (state_ == RolloutState::kTrying) move_others();
  if (state_ == RolloutState::kMoving) leave(false);
}

void ClassRollout::roll_back(std::string why) {
  if (before_ == nullptr || state_ == RolloutState::kRolledBack) return;
  reason_ = std::move(why);
  state_ = RolloutState::kRolledBack;
  runtime_.classes().put(before_);
  runtime_.class_is_back(before_->segment);
  if (trial_) trial_->places = 0;
  runtime_.leave_version(next_, EvictReason::kCodeUpdate, false);
}

}  // namespace hearth::runtime
