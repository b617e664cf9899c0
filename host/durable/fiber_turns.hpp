#pragma once
// The news of an agent's turns, which its clients hear.

#include "durable/jobs.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hearth::durable {

// News of a turn for clients.
struct TurnNews {
  std::string id;
  int recovery = 0;  // the number of the recovery that begins, from 1; 0: the turn was given up
  std::string why{};
};

// Threads, Durable, Failure   As Jobs, which outlives it.
class FiberTurns {
 public:
  // At most so many turns of each kind are in standing().
  static constexpr std::size_t kMostStanding = 20;

  explicit FiberTurns(Jobs& jobs) : jobs_(jobs) {}

  // A counted recovery of the fiber begins.
  void recovers(const Job& job);
  // The fiber, which is still open, is given up.
  void given_up(const Job& job, std::string_view why);
  // A later turn has begun: earlier given up turns are no news any more.
  void begins();
  // The news since the last call, in order.
  std::vector<TurnNews> take() { return std::exchange(news_, {}); }
  // The last news of turns, for a client that has just connected: of turns that were recovered and
  // go on, and of given up turns whose records are still dead and after which no turn has begun. At
  // most kMostStanding of each, the oldest first.
  [[nodiscard]] std::vector<TurnNews> standing();

 private:
  // The given up turns whose records are still dead and after which no turn has begun, the oldest
  // first.
  const std::vector<std::string>& ids();

  Jobs& jobs_;
  std::vector<TurnNews> news_;
  // See ids(). Nothing: not read yet.
  std::optional<std::vector<std::string>> ids_;
};

}  // namespace hearth::durable
