#pragma once
// Classes of a library on their way to other versions, together: all of them if the code is new,
// one if its settings are.

#include "base/clock.hpp"
#include "base/logger.hpp"
#include "plugins/versions/class_configuration.hpp"
#include "runtime/class_rollout.hpp"
#include "runtime/runtime.hpp"

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace hearth::plugins {

using Served = std::shared_ptr<const runtime::ServedClass>;

// A class as it is served, and where its settings are from.
struct ClassVersion {
  Served served;
  ClassConfiguration::Settings settings;
};
using ClassVersions = std::map<std::string, ClassVersion>;  // by segment

// config.doubtful, if the settings name kinds of operations that the class does not list: what they
// say of those holds for nothing.
void warn_of_unlisted_kinds(Logger& logger, const ClassVersion& version);

// The registry's entry for a class as long as that has the code of `version`, else that of
// `version`.
[[nodiscard]] Served served_now(runtime::Runtime& runtime, const ClassVersion& version);

// state         what is true                                   is followed by
// kTrying       agents of some class try its next version      kMoving, kRolledBack
// kMoving       all that tried have passed; others follow      kDone, kRolledBack
// kDone         no agent is left on a version before           kRolledBack, by roll_back()
// kRolledBack   too many agents of some class have failed, or  -
//               roll_back() was called; that class is back
//
// Of one class runtime/class_rollout.hpp tells more.
//
// Threads    As runtime::ClassRollout.
// Lifetime   Runtime and clock outlive it. Dropped before its end it leaves the agents where they
//            are, and those that could not start meet what serves their class then.
class Rollout {
 public:
  using State = runtime::RolloutState;

  // `before`: what is served, and what serves again if this is taken back.
  Rollout(runtime::Runtime& runtime, const Clock& clock, ClassVersions before);

  // From now on `next` serves its class, in the place of what `before` had of it, if anything.
  const runtime::ClassRollout& begin(ClassVersion next, const runtime::RolloutSettings& settings);

  // What has happened since; drives it on.
  State look();
  // When look() would do something without any news. Absent: never.
  [[nodiscard]] std::optional<SteadyTime> next_deadline() const;

  // Something newer waits: nobody is waited for.
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
