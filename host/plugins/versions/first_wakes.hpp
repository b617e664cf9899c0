#pragma once
// The first agents that wake on a version which few or none could try before it served.

#include "runtime/class_rollout.hpp"

#include <cstddef>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>

namespace hearth::plugins {

// A version is judged by as many agents as would have tried it. One with a newer schema is proven
// as soon as it is judged: when agents have migrated, those before it could not serve them.
//
// Threads   One.
class FirstWakes {
 public:
  // Classes, by segment, whose first agents are to be watched. Nothing else is watched any more.
  void watch(std::set<std::string> segments, bool has_newer_schema) {
    untried_ = std::move(segments);
    has_newer_schema_ = has_newer_schema;
  }
  void end() { watch({}, false); }
  // Agents that fail from now on may do so for another reason.
  void excuse() { untried_.clear(); }
  [[nodiscard]] bool expects_any() const { return !untried_.empty(); }

  enum class Verdict {
    kOpen,
    kProven,  // told once
    kFailed,  // too many of some class could not start; no agent is watched any more
  };
  struct Judgement {
    Verdict verdict = Verdict::kOpen;
    std::string reason = {};  // of kFailed: "2 of the first 5 agents that woke ..."
  };
  // What is known of the agents of a class, by segment; never null.
  using Starts = std::function<std::shared_ptr<const runtime::StartCounts>(const std::string&)>;
  // `is_over`: no more of them are waited for.
  [[nodiscard]] Judgement judge(const Starts& starts_of, const runtime::RolloutSettings& settings,
                                bool is_over);

 private:
  std::set<std::string> untried_;
  bool has_newer_schema_ = false;
};

}  // namespace hearth::plugins
