#pragma once
// Moves classes of a library to other versions together: all classes for new code, one class for
// new settings.

#include "base/clock.hpp"
#include "plugins/versions/class_configuration.hpp"
#include "runtime/class_rollout.hpp"
#include "runtime/runtime.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace hearth::plugins {

using Served = std::shared_ptr<const runtime::ServedClass>;

// A class as it is served, and the class file of its settings.
struct ClassVersion {
  Served served;
  ClassConfiguration::Settings settings;
};
using ClassVersions = std::map<std::string, ClassVersion>;  // by segment

// The first of two deadlines; absent: never.
[[nodiscard]] inline std::optional<SteadyTime> earlier(std::optional<SteadyTime> one,
                                                       std::optional<SteadyTime> other) {
  return one && other ? std::min(*one, *other) : one ? one : other;
}

// The classes of `next`, by segment, with a newer schema than in `before`. If `before` is empty, it
// is unknown: each class with a schema version counts.
[[nodiscard]] std::set<std::string> with_newer_schema(const ClassVersions& next,
                                                      const ClassVersions& before);

// The registry's entry for the class if it has the code of `version`. Otherwise `version.served`.
[[nodiscard]] Served served_now(runtime::Runtime& runtime, const ClassVersion& version);

// state         what is true                                   is followed by
// kTrying       agents of some class try its next version      kMoving, kRolledBack
// kMoving       the trials have passed; other agents follow    kDone, kRolledBack
// kDone         no agent is left on a version before           kRolledBack, by roll_back()
// kRolledBack   too many agents of some class have failed, or  -
//               roll_back() was called; that class is back
//
// runtime/class_rollout.hpp says more about one class.
//
// Threads    As runtime::ClassRollout.
// Lifetime   Runtime and clock outlive it. If it is destroyed before its end, agents stay on the
//            version that they have. Agents that could not start get the version that serves their
//            class at that moment.
class Rollout {
 public:
  using State = runtime::RolloutState;

  // `before`: what is served now, and again if this rollout is taken back.
  Rollout(runtime::Runtime& runtime, const Clock& clock, ClassVersions before);

  // From now on `next` serves its class. It replaces the version in `before`, if there is one.
  const runtime::ClassRollout& begin(ClassVersion next, const runtime::RolloutSettings& settings);

  // Looks at what has happened and moves the rollout on.
  State look();
  // When look() would do something without any news. Absent: never.
  [[nodiscard]] std::optional<SteadyTime> next_deadline() const;

  // A newer version waits: moves the remaining agents at once.
  void hurry();
  // Every class goes back, whether its agents have failed or not.
  void roll_back(const std::string& reason);
  // Why a class was taken back. Empty: none was.
  [[nodiscard]] std::string reason() const;

  [[nodiscard]] const ClassVersions& before() const { return before_; }
  [[nodiscard]] const ClassVersions& next() const { return next_; }
  // Versions that were served and have a next one.
  [[nodiscard]] std::vector<Served> overtaken() const;
  // How many agents of each class, by segment, have tried its next version or failed on it.
  [[nodiscard]] std::map<std::string, std::size_t> tried() const;

 private:
  runtime::Runtime& runtime_;
  const Clock& clock_;
  ClassVersions before_;
  ClassVersions next_;
  std::vector<std::unique_ptr<runtime::ClassRollout>> classes_;
};

}  // namespace hearth::plugins
