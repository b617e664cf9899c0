#pragma once
// The rollout of a class from one version to another: of its code, its settings, or both.

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
  // The latest moment with `drain`: agents under trial have this long from the beginning, the
  // others this long from the end of the trial.
  std::chrono::milliseconds drain_deadline{60'000};
  std::size_t trial_agents = 5;      // agents that try the new version first; 0: no trial
  unsigned max_failed_percent = 20;  // of trial agents; if more fail, the rollout is taken back
  std::chrono::milliseconds trial_time{30'000};  // limit; then the results so far decide
  std::chrono::milliseconds patience{1'000};     // how long to wait for the shards
  // Agents that still move from an earlier version: the trial waits until so many have started, or
  // failed.
  std::size_t awaited = 0;
};

// state        what is true                                          leaves it when
// kTrying      new wakes get the new version; a few agents were      enough of them have started
//              moved to it; the others stay on the old one           or failed, or trial_time is
//                                                                    over
// kMoving      the other agents are moving                           no agent has the old version
// kDone        all agents have the new version                       roll_back()
// kRolledBack  the old version serves again; agents of the new       -
//              one are moving back
enum class RolloutState { kTrying, kMoving, kDone, kRolledBack };
std::string_view to_string(RolloutState state) noexcept;

// Promises
//  P1 Never none   Some version serves the class all the time.
//  P2 Clients      Sockets stay open; frames wait while an agent moves (AgentSlot).
//  P3 No trial error  Agents that fail to start on the version under trial, and their clients, get
//                  no error before the trial is decided.
//  P4 Idle first   With `drain`, busy agents do not move before the deadline, not even for the
//                  trial.
//  P5 Way back     If too many agents fail to start on the new version during the trial, the old
//                  version takes over again.
//
// P3: If the old version comes back, those agents go on with it (P4 of AgentSlot).
// P5: The old version is kept until this object is destroyed, for roll_back().
//
// Threads    One, not a loop's; the loops run. No member waits for long: the owner calls look()
//            when the registry's news ring, and at next_deadline(). The constructor waits for the
//            shards at most settings.patience. A late shard still takes part in the trial, and
//            the rollout is not done before it has answered.
// Lifetime   The runtime outlives it. If it is destroyed early, agents stay where they are.
class ClassRollout {
 public:
  // Begins the rollout: `next` serves its segment from now on. `before` served it until now; null:
  // no version did.
  ClassRollout(Runtime& runtime, std::shared_ptr<const ServedClass> before,
               std::shared_ptr<const ServedClass> next, RolloutSettings settings,
               const Clock& clock);
  ~ClassRollout();
  ClassRollout(const ClassRollout&) = delete;
  ClassRollout& operator=(const ClassRollout&) = delete;

  // Checks the progress and takes the next steps.
  RolloutState look();
  // When look() has something to do even without news. Absent: never.
  [[nodiscard]] std::optional<SteadyTime> next_deadline() const;
  [[nodiscard]] RolloutState state() const { return state_; }

  // A still newer version waits: agents move at once. Agents that could not start on this version
  // wait until this object is destroyed. Destroy it when the newer version serves the class: then
  // they get that version.
  void hurry();
  // Goes back to the old version, because another class of the same library has failed.
  void roll_back(std::string why);

  [[nodiscard]] const ServedClass& next() const { return *next_; }
  [[nodiscard]] const std::shared_ptr<const ServedClass>& before() const { return before_; }
  // Why the rollout was taken back.
  [[nodiscard]] const std::string& reason() const { return reason_; }
  // Agents that were moved for the trial; and agents that could not start on the new version.
  [[nodiscard]] std::size_t tried() const;
  [[nodiscard]] std::size_t failed() const { return next_->starts->failed; }
  // Shards that have not answered the last request: the code of some agent holds them up.
  [[nodiscard]] std::vector<unsigned> silent_shards() const;

 private:
  void begin_trial();
  // Agents that try the new version now, or will.
  [[nodiscard]] std::size_t expected() const;
  // Makes it certain that the new version stays, or that it goes. True: it was open until now.
  bool decide();
  // Tells the shards if it was open until now.
  void end_trial();
  void judge();
  void keep();  // the new version
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
  std::shared_ptr<VersionTrial> trial_;        // null: there was none
  std::shared_ptr<const ShardAnswers> asked_;  // what they were last asked
  bool trial_forced_ = false;                  // the deadline of draining has passed for the trial
  bool forced_ = false;                        // ... and for the others
  std::string reason_;
};

}  // namespace hearth::runtime
