#include "plugins/admission/probe.hpp"

#include "json/json.hpp"
#include "plugins/admission/trial_process.hpp"

#include <sys/wait.h>

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

Story read_story(std::string_view lines) {
  Story story;
  while (!lines.empty()) {
    const std::size_t end = std::min(lines.find('\n'), lines.size());
    const auto line = parse_json(lines.substr(0, end), 4);
    lines.remove_prefix(std::min(end + 1, lines.size()));
    if (!line || !line->is_object()) continue;  // not from VerdictStream
    if (const std::string step = text_member(*line, "step"); !step.empty()) story.step = step;
    const std::string verdict = text_member(*line, "verdict");
    if (verdict == "accepted") story.accepted = true;
    if (verdict != "refused") continue;
    const std::string id = text_member(*line, "rule");
    const bool known = std::ranges::find(rules(), id, &Rule::id) != rules().end();
    story.refused = finding(known ? id : "P1", text_member(*line, "reason"));
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

std::optional<Finding> judge(const Story& story, int status, const std::string& output) {
  const std::string where(doing(story.step));
  if (WIFSIGNALED(status)) {
    return finding(
        "P1", "it crashed (" + signal_name(WTERMSIG(status)) + ") " + where + last_words(output));
  }
  if (story.refused) {
    Finding refused = *story.refused;
    if (refused.rule == "L4") refused.reason += last_words(output);
    return refused;
  }
  if (story.accepted) return std::nullopt;
  return finding("P1", "it ended the process (status " + std::to_string(WEXITSTATUS(status)) +
                           ") " + where + last_words(output));
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
  const Story story = read_story(trial.verdict);
  if (!trial.in_time) {
    return finding("P2", "it was still busy after " + std::to_string(options.time_limit.count()) +
                             " ms " + std::string(doing(story.step)) + last_words(trial.output));
  }
  return judge(story, trial.status, trial.output);
}

}  // namespace hearth::plugins
