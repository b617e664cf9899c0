#pragma once
// The first agents that wake on a version that few or no agents could try.

#include "runtime/class_rollout.hpp"

#include <cstddef>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>

namespace hearth::plugins {

// These agents judge the version: as many of each class as a trial needs. A version with a newer
// schema is proven once it is judged: the versions before could not serve agents that have
// migrated.
//
// Threads   One.
class FirstWakes {
 public:
  // From now on watches the first agents of these classes, by segment, and of no others.
  void watch(std::set<std::string> segments, bool has_newer_schema) {
    untried_ = std::move(segments);
    has_newer_schema_ = has_newer_schema;
  }
  void end() { watch({}, false); }
  // Stops watching: agents that fail from now on may have another reason.
  void excuse() { untried_.clear(); }
  // The class does not run this code any more.
  void forget(const std::string& segment) { untried_.erase(segment); }
  [[nodiscard]] bool expects_any() const { return !untried_.empty(); }

  enum class Verdict {
    kOpen,
    kProven,  // returned once, for a version with a newer schema
    kFailed,  // too many agents of some class could not start; nothing is watched any more
  };
  struct Judgement {
    Verdict verdict = Verdict::kOpen;
    std::string reason = {};  // of kFailed: "2 of the first 5 agents that woke ..."
  };
  // The starts of a class's agents, by segment; never null.
  using Starts = std::function<std::shared_ptr<const runtime::StartCounts>(const std::string&)>;
  // `is_over`: judge by the agents that have woken until now.
  [[nodiscard]] Judgement judge(const Starts& starts_of, const runtime::RolloutSettings& settings,
                                bool is_over);

 private:
  std::set<std::string> untried_;
  bool has_newer_schema_ = false;
};

}  // namespace hearth::plugins
