#pragma once
// A class on its way from one version to another: of its code, its settings, or both.

#include "base/clock.hpp"
#include "runtime/class_registry.hpp"
#include "runtime/shard_answers.hpp"

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::runtime {

class Runtime;
struct VersionTrial;

struct RolloutSettings {
  bool drain = false;  // agents move at their next idle moment; else at once
  // ... and at the latest then: those that try so long after the beginning, the others so long
  // after the trial.
  std::chrono::milliseconds drain_deadline{60'000};
  std::size_t trial_agents = 5;      // so many try the new version before the others; 0: no trial
  unsigned max_failed_percent = 20;  // of those; more, and the new version is taken back
  std::chrono::milliseconds trial_time{30'000};  // at most; then what was seen decides
  std::chrono::milliseconds patience{1'000};     // how long the shards are waited for
  // Agents that are on their way from yet another version: the trial is not over before so many
  // have started, or failed.
  std::size_t awaited = 0;
};

// state        what is true                                          leaves it by
// kTrying      new wakes get the new version; a few agents were      enough of them have started,
//              moved to it; the others go on with the old one        or failed, or trial_time is
//                                                                    over
// kMoving      the others are on their way                           none of the old version is
//                                                                    left
// kDone        all agents have the new version                       roll_back()
// kRolledBack  the old version serves again, and the agents of the new one are on  -
//              their way back
enum class RolloutState { kTrying, kMoving, kDone, kRolledBack };
std::string_view to_string(RolloutState state) noexcept;

// Promises
//  P1 Never none   Some version serves the class all the time.
//  P2 Clients      Sockets stay open; frames wait while an agent moves (AgentSlot).
//  P3 No trial error  Agents that fail to start while the version is on trial, and their clients,
//                     are told nothing before the trial is over:
//                  if the old version comes back they go on with it (P4 of AgentSlot).
//  P4 Idle first   With `drain` busy agents do not move before the deadline, not even for the
//                  trial.
//  P5 Way back     Until the trial is over the old version is kept, and takes over again if too
//                  many agents fail to start on the new one. It is kept until this object goes, for
//                  roll_back().
//
// Threads    One, none of the loops'; the loops run. No member waits for long: look() is called
//            when the registry's news ring, and at next_deadline(). The constructor waits for the
//            shards at most settings.patience; one that is held up takes part in the trial if it
//            comes in time, and the rollout is not done before it has answered.
// Lifetime   The runtime outlives it. Dropped before its end it leaves the agents where they are.
class ClassRollout {
 public:
  // Begins: `next` serves its segment from now on. `before` is what served it; null if nothing did.
  ClassRollout(Runtime& runtime, std::shared_ptr<const ServedClass> before,
               std::shared_ptr<const ServedClass> next, RolloutSettings settings,
               const Clock& clock);
  ~ClassRollout();
  ClassRollout(const ClassRollout&) = delete;
  ClassRollout& operator=(const ClassRollout&) = delete;

  // What has happened since; drives it on.
  RolloutState look();
  // When look() would do something without any news. Absent: never.
  [[nodiscard]] std::optional<SteadyTime> next_deadline() const;
  [[nodiscard]] RolloutState state() const { return state_; }

  // A still newer version waits, so no agent is waited for. Agents that could not start on this one
  // wait on until this object goes, which is best when the newer one serves the class: then they
  // meet that.
  void hurry();
  // Back to the old version, though this one has not failed: another class of the same library has.
  void roll_back(std::string why);

  [[nodiscard]] const ServedClass& next() const { return *next_; }
  [[nodiscard]] const std::shared_ptr<const ServedClass>& before() const { return before_; }
  // Why it was taken back.
  [[nodiscard]] const std::string& reason() const { return reason_; }
  // Agents that were moved for the trial, and how many of those that started on the new version
  // could not.
  [[nodiscard]] std::size_t tried() const;
  [[nodiscard]] std::size_t failed() const { return next_->starts->failed; }
  // Shards that have not answered what they were asked last: some agent's code holds them up.
  [[nodiscard]] std::vector<unsigned> silent_shards() const;

 private:
  void begin_trial();
  // Agents that try, or will.
  [[nodiscard]] std::size_t expected() const;
  // From now on it is certain that the new version stays, or that it goes: true if that was open.
  bool decide();
  void judge();
  void keep();  // the new version: the trial is over
  void move_others();
  void leave(bool when_idle);

  Runtime& runtime_;
  std::shared_ptr<const ServedClass> before_;
  std::shared_ptr<const ServedClass> next_;
  const RolloutSettings settings_;
  const Clock& clock_;
  RolloutState state_ = RolloutState::kTrying;
  SteadyTime began_;
  SteadyTime moving_since_{};
  std::shared_ptr<VersionTrial> trial_;          // null: there was none
  std::shared_ptr<const ShardAnswers> leaving_;  // what was asked last
  bool trial_forced_ = false;  // the deadline of draining has passed for the trial
  bool forced_ = false;        // ... and for the others
  std::string reason_;
};

}  // namespace hearth::runtime
