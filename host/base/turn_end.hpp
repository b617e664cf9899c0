#pragma once
// What gathers while a loop runs its ready tasks, and leaves together at the end of that turn.

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace hearth {

// A turn: the tasks that are ready when the first thing gathers. One task of the loop is posted for
// all that gathers in it.
//
// Promises
//  P1 Order    At the end of a turn the commits come first, and then the sends, so that what a
//              commit lets out leaves in the same end.
//  P2 Bounded  A step that says that more is coming is called again at the end of the next turn,
//              kMostTurns times in all at most.
//
// Threads   The loop's.
// Lifetime  The loop runs no task of `post` after this is destroyed. Steps that are left then are
//           dropped.
// Failure   A step does not throw.
class TurnEnd {
 public:
  enum class Phase : std::uint8_t { kCommit, kSend };
  static constexpr int kMostTurns = 16;

  // Runs at the end of a turn. False: more is coming, call it again at the end of the next one.
  // `is_last`: it must do its work now, and its result is ignored.
  using Step = std::function<bool(bool is_last)>;

  // `post`: runs a task after those that are ready.
  explicit TurnEnd(std::function<void(std::function<void()>)> post);
  TurnEnd(const TurnEnd&) = delete;
  TurnEnd& operator=(const TurnEnd&) = delete;

  // A step that is added while a phase runs has its turn in a later phase of this end, or else at
  // the end of the next turn.
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
