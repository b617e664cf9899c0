// The way back from a version: while the process runs, and after it has ended it.
#include "plugins/versions/plugin_reloader.hpp"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

namespace hearth::plugins {

void PluginReloader::begin_probation(const std::filesystem::path& file) {
  probation_.begin(file, clock_.steady_now() + settings_.probation);
}

void PluginReloader::watch_first_wakes(const std::filesystem::path& file, Library& library) {
  for (const auto& [segment, version] : library.classes) {
    const auto before = library.classes_before.find(segment);
    if (before == library.classes_before.end()) continue;
    library.has_newer_schema =
        library.has_newer_schema || version.served->agent_class->schema_version() >
                                        before->second.served->agent_class->schema_version();
    if (library.on_trial) library.untried.insert(segment);
  }
  begin_probation(file);
}

void PluginReloader::end_probations() {
  for (const auto& file : probation_.over(clock_.steady_now())) {
    const auto library = libraries_.find(file);
    if (library != libraries_.end() && !goes_back(file, library->second, true)) loader_.prove(file);
  }
}

bool PluginReloader::goes_back(const std::filesystem::path& file, Library& library, bool is_over) {
  for (auto segment = library.untried.begin(); segment != library.untried.end();) {
    const auto starts = served_now(library.classes.at(*segment))->starts;
    const std::size_t failed = starts->failed;
    const std::size_t seen = starts->started + failed;
    const bool is_enough = seen >= settings_.rollout.trial_agents;
    // Of a few agents one may have a trouble of its own.
    const bool too_many = is_enough ? failed * 100 > seen * settings_.rollout.max_failed_percent
                                    : is_over && failed > 0 && starts->started == 0;
    if (too_many) {
      go_back(file, library,
              std::to_string(failed) + " of the first " + std::to_string(seen) +
                  " agents that woke could not start on it");
      return true;
    }
    segment = is_enough || is_over ? library.untried.erase(segment) : std::next(segment);
  }
  if (library.untried.empty() && std::exchange(library.has_newer_schema, false)) {
    probation_.end(file);
    loader_.prove(file);
  }
  return false;
}

void PluginReloader::go_back(const std::filesystem::path& file, Library& library,
                             const std::string& reason) {
  library.untried.clear();
  const VersionReport report = loader_.go_back(file, reason);
  if (!report.plugin) return;
  tell_taken_back(file, library, library.hash, reason);
  refuse_taken_back(file, library.hash);
  std::string note;
  bring_in(file, *report.plugin, note);
}

void PluginReloader::tell_taken_back(const std::filesystem::path& file, Library& library,
                                     const std::string& hash, const std::string& reason) {
  logger_.write(
      LogLevel::kError, "reload.taken_back",
      {{"file", file.native()},
       {"sha256", hash},
       {"reason", reason},
       {"advice",
        "the version before it is served: replace the file, or run `hearth reload` to try what it "
        "holds again"}});
  rollbacks_.add();
  library.failed_classes.clear();
  for (const auto& [segment, version] : library.classes) library.failed_classes.insert(segment);
}

void PluginReloader::refuse_taken_back(const std::filesystem::path& file, const std::string& hash) {
  const auto why = loader_.refusal(file, hash);
  if (!why) return;
  board_.refuse({.file = file, .rule = why->rule, .reason = why->reason, .sha256 = hash});
}

void PluginReloader::adopt_trial(const LoadedPlugin& plugin, const std::vector<Refusal>& refusals) {
  Library& library = libraries_.at(plugin.file);
  library.hash = plugin.sha256;
  if (plugin.on_trial) {
    library.on_trial = true;
    for (const auto& [segment, version] : library.classes) library.untried.insert(segment);
    begin_probation(plugin.file);
  }
  if (!plugin.instead_of) return;
  const auto refusal = std::ranges::find(refusals, plugin.file, &Refusal::file);
  tell_taken_back(plugin.file, library, *plugin.instead_of,
                  refusal == refusals.end() ? std::string() : refusal->reason);
}

void PluginReloader::take_back(const std::filesystem::path& file, Library& library) {
  const auto failed = std::ranges::find_if(library.rollouts, [](const auto& rollout) {
    return rollout->state() == runtime::RolloutState::kRolledBack;
  });
  const std::string reason = (*failed)->reason();
  for (const auto& rollout : library.rollouts) rollout->roll_back(reason);
  loader_.take_back(file, library.generation, reason);
  logger_.write(LogLevel::kError, "reload.taken_back",
                {{"file", file.native()},
                 {"generation", library.generation},
                 {"reason", reason},
                 {"advice", "the version before it goes on; agent.start_failed tells more"}});
  rollbacks_.add();
  library.failed_classes.clear();
  for (const auto& [segment, version] : library.classes) library.failed_classes.insert(segment);
  refuse_taken_back(file, library.hash);
  // None of those that failed lives now: settings that follow alone are to be judged by them all
  // the same.
  for (const auto& rollout : library.rollouts) {
    const auto& segment = rollout->next().segment;
    library.awaited[segment] = std::max(rollout->tried(), rollout->failed());
    earlier_[file].push_back(library.classes.at(segment).served);
  }
  library.rollouts.clear();
  begin_probation(file);  // of what goes on, unless it is proven
  library.generation = library.generation_before;
  Versions added = std::exchange(library.classes, std::exchange(library.classes_before, {}));
  std::erase_if(library.classes, [&](const auto& each) {
    const auto& [segment, version] = each;
    added.erase(segment);
    if (const Served now = runtime_.classes().find(segment))
      return now != version.served;  // left out by the version, and another library has it by now
    runtime_.classes().put(version.served);  // the version had left it out
    runtime_.class_is_back(segment);
    return false;
  });
  for (const auto& [segment, version] : library.classes) begin_settings_probation(segment, version);
  if (!added.empty()) remove(file, added);  // nothing else serves these
  retiring_ = true;
  errands_.stir();
}

}  // namespace hearth::plugins
