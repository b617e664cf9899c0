#include "plugins/admission/probe.hpp"

#include "json/json.hpp"
#include "plugins/admission/trial_process.hpp"

#include <algorithm>
#include <string_view>

namespace hearth::plugins {
namespace {

constexpr std::string_view kUntried = "it cannot be tried: ";

// The child's lines on the verdict pipe.
struct Story {
  std::string step = "start";  // the last one that began
  bool accepted = false;
  std::optional<Finding> refused;
};

Story read_story(const TrialOutcome& trial) {
  Story story;
  for (const Json& line : trial.lines()) {
    if (const std::string step = text_member(line, "step"); !step.empty()) story.step = step;
    const std::string verdict = text_member(line, "verdict");
    if (verdict == "accepted") story.accepted = true;
    if (verdict != "refused") continue;
    const std::string id = text_member(line, "rule");
    const bool known = std::ranges::find(rules(), id, &Rule::id) != rules().end();
    story.refused = finding(known ? id : "P1", text_member(line, "reason"));
  }
  return story;
}

std::string_view doing(std::string_view step) {
  if (step == "load") return "while it was loaded and its constructors ran";
  if (step == "init") return "in init()";
  if (step == "classes") return "while its classes were read";
  if (step == "deinit") return "in deinit() or its destructors";
  if (step == "end") return "after it had been unloaded";
  return "before it was loaded";
}

}  // namespace

bool is_untried(const Finding& finding) {
  return finding.rule == "P1" && finding.reason.starts_with(kUntried);
}

std::optional<Finding> probe_library(const std::filesystem::path& library,
                                     const ProbeOptions& options) {
  const bool is_given = options.descriptor >= 0;
  const std::string path =
      is_given ? "/proc/self/fd/" + std::to_string(kGivenDescriptor) : library.native();
  const TrialOutcome trial = run_trial({.program = options.program,
                                        .arguments = {kProbeArgument, path},
                                        .time_limit = options.time_limit,
                                        .given = options.descriptor});
  if (!trial.not_started.empty()) return finding("P1", std::string(kUntried) + trial.not_started);
  const Story story = read_story(trial);
  const auto broken = [&](std::string_view rule) {
    return finding(rule, trial.how_it_ended(doing(story.step)));
  };
  if (!trial.in_time) return broken("P2");
  if (trial.has_crashed()) return broken("P1");
  if (story.refused) {
    Finding refused = *story.refused;
    if (refused.rule == "L4") refused.reason += last_words(trial.output);
    return refused;
  }
  if (story.accepted) return std::nullopt;
  return broken("P1");
}

}  // namespace hearth::plugins
