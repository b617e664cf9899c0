#pragma once
// What must run for a while before it is proven: a version of a library, or settings of a class.

#include "base/clock.hpp"
#include "runtime/class_rollout.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace hearth::plugins {

// If few or no agents could try a version, the first that wake judge it: as many of each class as a
// trial needs. A version with a newer schema is proven once each class whose schema is newer is
// judged: the versions before could not serve agents that have migrated.
//
// Threads   One.
class Probation {
 public:
  // Until `ends`. `untried`: the classes, by segment, whose first agents judge. `migrating`: those
  // of them whose schema is newer.
  void begin(SteadyTime ends, std::set<std::string> untried = {},
             std::set<std::string> migrating = {}) {
    end();
    ends_ = ends;
    untried_ = std::move(untried);
    migrating_ = std::move(migrating);
  }
  // What came later has failed, and this goes on. Agents that fail now may have failed because of
  // that.
  void begin_again(SteadyTime ends) {
    ends_ = ends;
    excused_ = untried_;
  }
  void end() { *this = {}; }
  // Agents of the class that fail from now on may have another reason.
  void excuse(const std::string& segment) { excused_.insert(segment); }
  // The class does not run this code any more.
  void forget(const std::string& segment) {
    untried_.erase(segment);
    migrating_.erase(segment);
  }

  // Absent: nothing is on probation.
  [[nodiscard]] std::optional<SteadyTime> ends() const { return ends_; }
  [[nodiscard]] bool expects_wakes() const { return !untried_.empty(); }

  // kProven and kFailed, which is too many agents of some class that could not start, end it.
  enum class Verdict { kOpen, kProven, kFailed };
  struct Judgement {
    Verdict verdict = Verdict::kOpen;
    std::string reason = {};  // of kFailed: "2 of the first 5 agents that woke ..."
  };
  // The starts of a class's agents, by segment; never null.
  using Starts = std::function<std::shared_ptr<const runtime::StartCounts>(const std::string&)>;
  // Once it is over, the agents that have woken until then judge.
  [[nodiscard]] Judgement judge(const Starts& starts_of, const runtime::RolloutSettings& settings,
                                SteadyTime now);

 private:
  std::optional<SteadyTime> ends_;
  std::set<std::string> untried_;
  std::set<std::string> migrating_;
  std::set<std::string> excused_;  // only agents that start judge
};

}  // namespace hearth::plugins
