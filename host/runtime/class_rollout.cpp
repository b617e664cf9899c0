#include "runtime/class_rollout.hpp"

#include "runtime/runtime.hpp"

#include <algorithm>
#include <utility>

namespace hearth::runtime {
namespace {

// The thread that decides may be busy when the trial is over: agents wait for the decision this
// much longer.
constexpr std::chrono::milliseconds kDecisionTakes{10'000};

}  // namespace

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
  // First: an agent may be woken on the new version at once, and fail.
  if (before_ != nullptr && settings_.trial_agents > 0)
    next_->starts->undecided_until = began_ + settings_.trial_time + kDecisionTakes;
  runtime_.serve(next_);
  if (before_ == nullptr) {
    state_ = RolloutState::kDone;
  } else {
    begin_trial();
  }
}

ClassRollout::~ClassRollout() {
  end_trial();
}

void ClassRollout::end_trial() {
  if (!decide()) return;
  runtime_.tell(
      [segment = next_->segment](ShardVersions& versions) { versions.trial_is_over(segment); });
}

bool ClassRollout::decide() {
  return next_->starts->undecided_until.exchange(SteadyTime{}) != SteadyTime{};
}

void ClassRollout::begin_trial() {
  if (settings_.trial_agents == 0) return move_others();
  trial_ = std::make_shared<VersionTrial>(settings_.trial_agents, settings_.drain,
                                          runtime_.classes().news());
  asked_ = runtime_.ask([before = before_, trial = trial_](ShardVersions& versions) {
    versions.begin_trial(before, trial);
  });
  const bool all_answered = asked_->wait_for(settings_.patience);
  // No live agent can try. Agents that are woken now have no other version to fall back to.
  if (all_answered && expected() == 0 && settings_.awaited == 0) keep();
}

std::size_t ClassRollout::expected() const {
  if (!trial_) return 0;
  const std::size_t may_yet =
      trial_->candidates;  // first: an agent may be counted twice, but is never missed
  return std::min(may_yet + tried(), settings_.trial_agents);
}

std::size_t ClassRollout::tried() const {
  return trial_ ? trial_->tried.load() : 0;
}

std::vector<unsigned> ClassRollout::silent_shards() const {
  return asked_ ? asked_->missing() : std::vector<unsigned>{};
}

void ClassRollout::leave(bool when_idle) {
  if (trial_) trial_->places = 0;
  asked_ = runtime_.ask([before = before_, when_idle](ShardVersions& versions) {
    versions.leave(before, EvictReason::kCodeUpdate, when_idle);
  });
}

RolloutState ClassRollout::look() {
  if (state_ == RolloutState::kTrying) judge();
  if (state_ == RolloutState::kMoving) {
    const bool late = clock_.steady_now() - moving_since_ >= settings_.drain_deadline;
    if (settings_.drain && late && !std::exchange(forced_, true)) leave(false);
    // The old version is kept until this object is destroyed: another class of the library may
    // still fail, and take this class back too. Answers come first: a shard that has not answered
    // may be waking an agent on the old version.
    if (asked_->complete() && before_->starts->agents == 0) state_ = RolloutState::kDone;
  }
  return state_;
}

std::optional<SteadyTime> ClassRollout::next_deadline() const {
  if (state_ == RolloutState::kTrying) {
    const bool drains = settings_.drain && !trial_forced_;
    const auto first =
        drains ? std::min(settings_.trial_time, settings_.drain_deadline) : settings_.trial_time;
    return began_ + first;
  }
  if (state_ == RolloutState::kMoving && settings_.drain && !forced_)
    return moving_since_ + settings_.drain_deadline;
  return std::nullopt;
}

void ClassRollout::judge() {
  const std::size_t failed = next_->starts->failed;
  const std::size_t seen = next_->starts->started + failed;
  const std::size_t expected = std::max({this->expected(), seen, settings_.awaited});
  const bool too_many = failed * 100 > expected * settings_.max_failed_percent;
  const auto passed = clock_.steady_now() - began_;
  const bool over = passed >= settings_.trial_time;
  if (too_many && failed > 0) {
    roll_back(std::to_string(failed) + " of the first " + std::to_string(expected) +
              " agents could not start on it" +
              (next_->starts->unreadable ? ", or not read the work of earlier versions" : ""));
  } else if ((seen >= expected && asked_->complete()) || over) {
    keep();
  } else if (settings_.drain && passed >= settings_.drain_deadline &&
             !std::exchange(trial_forced_, true)) {
    trial_->only_idle = false;  // busy agents move at once
    runtime_.tell([before = before_, trial = trial_](ShardVersions& versions) {
      versions.begin_trial(before, trial);
    });
  }
}

void ClassRollout::keep() {
  end_trial();
  move_others();
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
  (void)decide();  // after put(): a reader of the decision finds the old version
  runtime_.tell(
      [segment = before_->segment](ShardVersions& versions) { versions.class_is_back(segment); });
  if (trial_) trial_->places = 0;
  runtime_.tell([next = next_](ShardVersions& versions) {
    versions.leave(next, EvictReason::kCodeUpdate, false);
  });
}

}  // namespace hearth::runtime
