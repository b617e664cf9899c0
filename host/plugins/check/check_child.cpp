#include "plugins/check/check_child.hpp"

#include "json/json.hpp"
#include "plugins/admission/trial_process.hpp"
#include "plugins/check/check_cases.hpp"
#include "plugins/check/check_voice.hpp"

#include <exception>

namespace hearth::plugins {
namespace {

constexpr int kBadUsage = 64;

CaseOutcome run_case(const CheckCase& one, CheckSetting setting, CheckVoice& voice,
                     GuardedMemory& memory) {
  try {
    CheckRun run(std::move(setting), voice, memory);
    CaseOutcome outcome = one.run(run);
    if (run.failure().empty()) return outcome;
    return CaseOutcome::error("the check itself failed: " + run.failure());
  } catch (const std::exception& failure) {
    // The check has no file, memory or thread. Exceptions of the library do not get here.
    return CaseOutcome::error("the check itself failed: " + std::string(failure.what()));
  }
}

}  // namespace

std::string to_argument(const CheckSetting& setting) {
  return dump_json(Json{{"library", setting.library.native()},
                        {"directory", setting.directory.native()},
                        {"seed", setting.seed},
                        {"options", setting.options},
                        {"methods", setting.methods},
                        {"may_call", setting.may_call},
                        {"older", setting.older.native()},
                        {"time_ms", setting.time.count()}});
}

Result<CheckSetting> parse_setting(std::string_view argument) {
  constexpr int kDepth = 3;
  const auto json = parse_json(argument, kDepth);
  if (!json) return json.error();
  CheckSetting setting;
  try {
    setting.library = json->at("library").get<std::string>();
    setting.directory = json->at("directory").get<std::string>();
    setting.seed = json->at("seed").get<std::uint64_t>();
    setting.options = json->at("options").get<std::string>();
    setting.methods = json->at("methods").get<std::vector<std::string>>();
    setting.older = json->at("older").get<std::string>();
    setting.may_call = json->at("may_call").get<bool>();
    setting.time = std::chrono::milliseconds(json->at("time_ms").get<std::int64_t>());
  } catch (const std::exception& failure) {
    return Error{Errc::kInvalidArgument, failure.what()};
  }
  return setting;
}

int run_plugin_check(std::string_view case_id, std::string_view setting_text) {
  const CheckCase* const one = find_check_case(case_id);
  auto setting = parse_setting(setting_text);
  if (one == nullptr || !setting) return kBadUsage;
  be_a_trial();
  CheckVoice voice;
  // The signal handler uses it until the end of the process.
  static GuardedMemory memory;
  report_crashes(memory);
  const CaseOutcome outcome = run_case(*one, *std::move(setting), voice, memory);
  voice.doing("after it had been unloaded");
  voice.verdict(outcome);
  return 0;
}

}  // namespace hearth::plugins
