#pragma once
// Collects work while a loop runs its ready tasks, and does it together at the end of that turn.

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace hearth {

// A turn is the tasks that are ready when the first step is added. TurnEnd posts one task to the
// loop for all steps of a turn.
//
// Promises
//  P1 Order    At the end of a turn the commits run before the sends, so that output that a commit
//              releases leaves at the same end.
//  P2 Bounded  A step that returns false is called again at the end of the next turn, at most
//              kMostTurns times in total.
//
// Threads   The loop's.
// Lifetime  The loop runs no task of `post` after the TurnEnd is destroyed. Remaining steps are
//           dropped.
// Failure   A step does not throw.
class TurnEnd {
 public:
  enum class Phase : std::uint8_t { kCommit, kSend };
  static constexpr int kMostTurns = 16;

  // Runs at the end of a turn. False: more work is coming, call the step again at the end of the
  // next turn. `is_last`: the step must do its work now, and its result is ignored.
  using Step = std::function<bool(bool is_last)>;

  // `post`: runs a task after the tasks that are ready.
  explicit TurnEnd(std::function<void(std::function<void()>)> post);
  TurnEnd(const TurnEnd&) = delete;
  TurnEnd& operator=(const TurnEnd&) = delete;

  // A step that is added while a phase runs is called in a later phase of the same end, or at the
  // end of the next turn.
  void add(Phase phase, Step step);

 private:
  struct Waiting {
    Step step;
    int turns = 0;
  };

  void plan();
  void run();

  const std::function<void(std::function<void()>)> post_;
  std::array<std::vector<Waiting>, 2> waiting_;  // by phase
  bool planned_ = false;
};

}  // namespace hearth
