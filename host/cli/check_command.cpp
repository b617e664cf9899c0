#include "base/clock.hpp"
#include "cli/commands.hpp"
#include "plugins/check/check.hpp"
#include "plugins/check/check_record.hpp"
#include "plugins/check/check_report.hpp"

#include <cstdio>
#include <optional>

namespace hearth::cli {
namespace {

int could_not(const std::string& why) {
  std::fputs(("hearth: " + why + "\n").c_str(), stderr);
  return kExitBadUsage;
}

void print(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

// The first id that no rule or case has.
std::optional<std::string> unknown_id(const CheckCommand& command) {
  for (const auto* const list : {&command.excluded, &command.only}) {
    for (const std::string& id : *list) {
      if (!plugins::is_check_id(id)) return id;
    }
  }
  return std::nullopt;
}

}  // namespace

int run(const CheckCommand& command) {
  if (const auto id = unknown_id(command))
    return could_not("no rule or case is called \"" + *id + "\"");
  const bool is_recorded = command.data && command.only.empty();
  if (is_recorded) {
    if (const auto why = data_of_another_user(*command.data)) return could_not(*why);
  }
  plugins::CheckOptions options;
  options.time_limit = command.time_limit;
  options.seed = command.seed;
  if (command.options) options.options = *command.options;
  options.methods = command.methods;
  options.may_call = !command.calls_nothing;
  if (command.older) options.older = *command.older;
  options.excluded = command.excluded;
  options.only = command.only;
  const bool to_people = !command.json;
  // Without progress for a minute the program would seem to hang.
  const bool shows_progress = to_people && !command.only_failed;
  if (shows_progress) {
    options.on_result = [](const plugins::CheckResult& result) {
      print(plugins::result_text(result));
    };
  }
  const auto report = plugins::check_library(command.library, options);
  if (!report) return could_not(report.error().message);
  if (command.json) {
    print(plugins::report_json(*report, command.only_failed));
  } else if (shows_progress) {
    print("\n" + plugins::report_head(*report) + plugins::report_end(*report));
  } else {
    print(plugins::report_text(*report, true));
  }
  if (!report->passed()) return kExitFailed;
  if (!is_recorded) return kExitClean;
  const SystemClock clock;
  const auto written = plugins::write_check_record(*command.data, *report, clock);
  if (!written) return could_not(written.error().message);
  return kExitClean;
}

}  // namespace hearth::cli
