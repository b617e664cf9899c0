#include "plugins/versions/code_rollouts.hpp"

#include "plugins/versions/class_news.hpp"

#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>

namespace hearth::plugins {

using What = ReloadOutcome::What;

CodeRollouts::CodeRollouts(const RolloutParts& parts, PluginLoader& loader,
                           SettingsRollouts& settings, std::chrono::milliseconds removal_grace,
                           Metrics& metrics)
    : parts_(parts),
      loader_(loader),
      settings_(settings),
      reloads_(metrics.counter("hearth_reloads_total",
                               "Versions of libraries that took the place of another one.")),
      refusals_(metrics.counter("hearth_reloads_refused_total",
                                "Changed files that were not loaded; the log says why.")),
      rollbacks_(metrics.counter("hearth_reloads_taken_back_total",
                                 "Versions that were taken back because agents failed on them.")),
      removed_(parts_.runtime, parts_.clock, parts_.logger, removal_grace) {}

void CodeRollouts::adopt(const LoadReport& report) {
  for (const LoadedPlugin& plugin : report.plugins) {
    ServedLibrary& library = parts_.libraries.by_file()[plugin.file];
    library.generation = plugin.generation;
    for (const auto& agent_class : plugin.classes) {
      ClassVersion version = parts_.libraries.version_of(agent_class);
      const std::string segment = version.served->segment;
      version.served = parts_.runtime.classes().find(segment);
      if (!version.served) continue;
      warn_of_unlisted_kinds(parts_.logger, version);
      library.classes[segment] = std::move(version);
    }
    adopt_trial(plugin, report.refusals);
  }
  for (const Refusal& refusal : report.refusals) refuse(refusal);
}

bool CodeRollouts::busy() const {
  return removed_.any() || parts_.libraries.is_moving();
}

bool CodeRollouts::expects_news() const {
  return busy() || retiring_ || parts_.libraries.has_leaving() ||
         std::ranges::any_of(parts_.libraries.by_file(), [](const auto& each) {
           return each.second.code.probation.expects_wakes();
         });
}

std::optional<SteadyTime> CodeRollouts::next_deadline() const {
  return earlier(parts_.libraries.next_deadline(), removed_.next_deadline());
}

void CodeRollouts::release(const std::string& segment) {
  for (auto& [file, library] : parts_.libraries.by_file()) {
    const auto found = library.classes.find(segment);
    if (found == library.classes.end() || found->second.served->refusal.empty()) continue;
    ClassVersion next = parts_.libraries.version_of(found->second.served->agent_class);
    if (!next.served->refusal.empty()) continue;
    found->second = next;
    parts_.runtime.serve(next.served);
    tell_served(parts_.logger, *next.served, parts_.configuration.paths(segment),
                next.settings->file);
  }
}

// ---- a file has changed -------------------------------------------------------------------------

ReloadOutcome CodeRollouts::changed(const std::filesystem::path& file) {
  VersionReport report = loader_.load_version(file);
  if (parts_.libraries.by_file().contains(file)) refuse_what_may_not_run(report);
  if (report.refusal) {
    refusals_.add();
    refuse(*report.refusal);
  } else {
    parts_.refused.libraries.erase(file);
  }
  if (!report.refusal && !report.plugin) return unchanged(file);
  ReloadOutcome outcome;
  outcome.file = file;
  if (report.plugin) outcome.note = bring_in(*report.plugin);
  if (report.refusal) {
    outcome.what = What::kRefused;
    outcome.reason = report.refusal->reason;
    if (report.plugin)  // the file is back, but the version before is served
      tell_taken_back(file, parts_.libraries.by_file()[file],
                      report.plugin->instead_of.value_or(""), report.refusal->reason);
    return outcome;
  }
  outcome.what = What::kNewVersion;
  outcome.version = report.plugin->version;
  outcome.generation = report.plugin->generation;
  return outcome;
}

ReloadOutcome CodeRollouts::unchanged(const std::filesystem::path& file) const {
  ReloadOutcome outcome;
  outcome.file = file;
  const auto found = parts_.libraries.by_file().find(file);
  if (found == parts_.libraries.by_file().end() || !found->second.code.rollout ||
      found->second.code.rollout->next().empty())
    return outcome;
  outcome.what = What::kNewVersion;
  outcome.version =
      found->second.code.rollout->next().begin()->second.served->agent_class->version();
  outcome.generation = found->second.generation;
  return outcome;
}

// Live agents must not move to a version that may not run: the version before goes on.
void CodeRollouts::refuse_what_may_not_run(VersionReport& report) {
  if (!report.plugin) return;
  std::string why;
  for (const auto& agent_class : report.plugin->classes) {
    if (why.empty()) why = parts_.libraries.version_of(agent_class).served->refusal;
  }
  if (why.empty()) return;
  Refusal refusal{.file = report.plugin->file, .rule = "R2", .reason = why};
  const std::uint64_t generation = report.plugin->generation;
  report.plugin.reset();  // it would keep the version in use
  loader_.take_back(refusal.file, generation, why);
  parts_.logger.record(
      LogLevel::kError, "plugin.refused",
      {{"file", refusal.file.native()}, {"rule", refusal.rule}, {"reason", refusal.reason}});
  report.refusal = std::move(refusal);
  retiring_ = true;
}

std::string CodeRollouts::bring_in(const LoadedPlugin& plugin) {
  const std::filesystem::path& file = plugin.file;
  ServedLibrary& library = parts_.libraries.by_file()[file];
  settings_.put_off(file, library);
  const std::unique_ptr<Rollout> overtaken = overtake(file, library);
  expel_earlier(file);
  removed_.end(file);
  return begin(file, library, plugin);
}

std::unique_ptr<Rollout> CodeRollouts::overtake(const std::filesystem::path& file,
                                                ServedLibrary& library) {
  settings_.hurry(file, library);
  std::unique_ptr<Rollout> rollout = std::move(library.code.rollout);
  if (!rollout) return nullptr;
  rollout->hurry();
  for (Served& served : rollout->overtaken()) parts_.libraries.leave(file, std::move(served));
  if (!rollout->before().empty()) reloads_.add();
  return rollout;
}

// Evicts the agents of versions before the served one. The same code with other settings counts as
// the served version.
void CodeRollouts::expel_earlier(const std::filesystem::path& file) {
  std::vector<std::pair<Served, std::shared_ptr<const runtime::ShardAnswers>>> going;
  for (Served& served : parts_.libraries.with_other_code(file)) {
    auto answers = parts_.runtime.ask([served](runtime::ShardVersions& versions) {
      versions.expel(served, runtime::EvictReason::kCodeUpdate);
    });
    going.emplace_back(std::move(served), std::move(answers));
  }
  parts_.runtime.classes().news()->want(true);
  const SteadyTime patience_ends = parts_.clock.steady_now() + parts_.patience.rules().patience;
  for (const auto& [served, answers] : going) {
    // Their databases may be closed a moment later, on another thread.
    while ((!answers->complete() || served->starts->agents > 0) &&
           parts_.errands.wait_for_news(patience_ends)) {
    }
  }
}

std::string CodeRollouts::begin(const std::filesystem::path& file, ServedLibrary& library,
                                const LoadedPlugin& plugin) {
  library.generation_before = std::exchange(library.generation, plugin.generation);
  library.hash = plugin.sha256;
  library.on_trial = plugin.on_trial;
  library.has_its_classes = true;
  const ClassVersions before = std::exchange(library.classes, {});
  ClassVersions left_out = before;
  library.code = {std::make_unique<Rollout>(parts_.runtime, parts_.clock, before)};
  std::string note;
  for (const auto& agent_class : plugin.classes) {
    const ClassVersion next = parts_.libraries.version_of(agent_class);
    const std::string& segment = next.served->segment;
    if (is_of_another(segment, file)) {  // its class file has changed: follow_class_files()
      library.has_its_classes = false;
      continue;
    }
    left_out.erase(segment);
    library.classes[segment] = next;
    if (const auto old = before.find(segment); old != before.end())
      settings_.begin_trial(library, next, old->second);
    runtime::RolloutSettings settings = parts_.patience.settings();
    settings.awaited = library.awaited[segment];
    const runtime::ClassRollout& of_class = library.code.rollout->begin(next, settings);
    const std::string silence = parts_.patience.tell(of_class);
    if (note.empty()) note = silence;
    parts_.logger.write(LogLevel::kInfo, "reload.begun",
                        {{"class", agent_class->name()},
                         {"version", agent_class->version()},
                         {"file", file.native()},
                         {"generation", plugin.generation},
                         {"trying", of_class.tried()}});
    warn_of_unlisted_kinds(parts_.logger, next);
  }
  library.awaited.clear();
  if (!left_out.empty()) remove(file, left_out);
  parts_.errands.stir();
  return note;
}

// ---- a file is gone -----------------------------------------------------------------------------

void CodeRollouts::gone(const std::filesystem::path& file) {
  parts_.refused.libraries.erase(file);
  const auto found = parts_.libraries.by_file().find(file);
  if (found == parts_.libraries.by_file().end()) return;
  loader_.forget_file(file);
  const std::unique_ptr<Rollout> overtaken = overtake(file, found->second);
  const ClassVersions classes = std::move(found->second.classes);
  parts_.libraries.by_file().erase(found);
  remove(file, classes);
}

void CodeRollouts::remove(const std::filesystem::path& file, const ClassVersions& classes) {
  removed_.remove(file, classes, "its agents keep their data; put the library back to serve them");
  for (const auto& [segment, version] : classes) parts_.libraries.leave(file, version.served);
  retiring_ = true;
}

// ---- what is in progress ------------------------------------------------------------------------

void CodeRollouts::drive() {
  for (auto& [file, library] : parts_.libraries.by_file()) drive(file, library);
  removed_.drive();
}

void CodeRollouts::drive(const std::filesystem::path& file, ServedLibrary& library) {
  if (!library.code.rollout) {
    const auto starts_of = [&](const std::string& segment) {
      return served_now(parts_.runtime, library.classes.at(segment))->starts;
    };
    const auto [verdict, reason] =
        library.code.probation.judge(starts_of, parts_.patience.rules(), parts_.clock.steady_now());
    if (verdict == Probation::Verdict::kProven) loader_.prove(file);
    if (verdict == Probation::Verdict::kFailed) go_back(file, library, reason);
    return;
  }
  switch (library.code.rollout->look()) {
    case Rollout::State::kTrying:
    case Rollout::State::kMoving: return;
    case Rollout::State::kRolledBack: return take_back(file, library);
    case Rollout::State::kDone: return finish(file, library);
  }
}

void CodeRollouts::finish(const std::filesystem::path& file, ServedLibrary& library) {
  for (const auto& [segment, version] : library.code.rollout->next()) {
    parts_.logger.record(LogLevel::kInfo, "reload.done",
                         {{"class", version.served->agent_class->name()},
                          {"version", version.served->agent_class->version()},
                          {"file", file.native()},
                          {"generation", library.generation}});
    // This code may accept settings that the code before failed on.
    parts_.configuration.try_again(version.served->agent_class->name());
  }
  if (!library.code.rollout->before().empty()) reloads_.add();
  judge_by_first_wakes(library);
  for (const auto& [segment, version] : library.classes)
    settings_.begin_probation(library, version);
  library.code.rollout.reset();
  retiring_ = true;
  parts_.errands.stir();  // for goes_back(), and for settings that have waited
}

void CodeRollouts::unload_unused() {
  if (!retiring_ || busy()) return;
  loader_.retire_unused();
  retiring_ = std::ranges::any_of(loader_.generations(), [](const GenerationInfo& each) {
    using State = GenerationInfo::State;
    return each.state == State::kDraining || each.state == State::kRetired;
  });
}

// ---- the way back -------------------------------------------------------------------------------

void CodeRollouts::adopt_trial(const LoadedPlugin& plugin, const std::vector<Refusal>& refusals) {
  ServedLibrary& library = parts_.libraries.by_file().at(plugin.file);
  library.hash = plugin.sha256;
  if (plugin.on_trial) {
    library.on_trial = true;
    std::set<std::string> segments;
    for (const auto& [segment, version] : library.classes) segments.insert(segment);
    begin_probation(library, std::move(segments));
  }
  if (!plugin.instead_of) return;
  const auto refusal = std::ranges::find(refusals, plugin.file, &Refusal::file);
  tell_taken_back(plugin.file, library, *plugin.instead_of,
                  refusal == refusals.end() ? std::string() : refusal->reason);
}

Result<ReloadOutcomes> CodeRollouts::take_back(const std::string& segment) {
  const std::string reason = "an administrator has taken it back";
  for (auto& [file, library] : parts_.libraries.by_file()) {
    if (!library.classes.contains(segment)) continue;
    const std::uint64_t generation = library.generation;
    if (!library.code.rollout) {
      go_back(file, library, reason);
    } else if (library.on_trial && !library.code.rollout->before().empty()) {
      library.code.rollout->roll_back(reason);
      take_back(file, library);
    }
    if (library.generation != generation)
      return ReloadOutcomes{
          {.file = file, .what = ReloadOutcome::What::kRefused, .reason = reason}};
    return Error{Errc::kConflict, "its version is not on trial, or no version before it was kept"};
  }
  return Error{Errc::kNotFound, "no library serves this class"};
}

void CodeRollouts::take_back(const std::filesystem::path& file, ServedLibrary& library) {
  const std::unique_ptr<Rollout> failed = std::move(library.code.rollout);
  const std::string reason = failed->reason();
  failed->roll_back(reason);
  loader_.take_back(file, library.generation, reason);
  parts_.logger.record(
      LogLevel::kError, "reload.taken_back",
      {{"file", file.native()},
       {"generation", library.generation},
       {"reason", reason},
       {"advice", "the version before it goes on; agent.start_failed tells more"}});
  count_taken_back(library);
  refuse_taken_back(file, library.hash);
  // The agents that failed are not in memory now. They must still judge settings that follow alone.
  for (const auto& [segment, agents] : failed->tried()) library.awaited[segment] = agents;
  for (const auto& [segment, version] : failed->next())
    parts_.libraries.leave(file, library.classes.at(segment).served);
  begin_probation(library);  // of the version that goes on, unless it is proven
  const ClassVersions added = restore_before(library, *failed);
  for (const auto& [segment, version] : library.classes)
    settings_.begin_probation(library, version);
  if (!added.empty()) remove(file, added);  // nothing else serves these
  retiring_ = true;
  parts_.errands.stir();
}

ClassVersions CodeRollouts::restore_before(ServedLibrary& library, const Rollout& failed) {
  library.generation = library.generation_before;
  library.has_its_classes = false;  // class files may have changed since
  ClassVersions added = std::exchange(library.classes, failed.before());
  std::erase_if(library.classes, [&](const auto& each) {
    const auto& [segment, version] = each;
    added.erase(segment);
    if (const Served now = parts_.runtime.classes().find(segment))
      return now != version.served;        // the version lacked it, and another library has it now
    parts_.runtime.serve(version.served);  // the version lacked it
    return false;
  });
  return added;
}

void CodeRollouts::judge_by_first_wakes(ServedLibrary& library) {
  std::set<std::string> segments;
  bool has_newer_schema = false;
  for (const auto& [segment, before] : library.code.rollout->before()) {
    const auto now = library.classes.find(segment);
    if (now == library.classes.end()) continue;
    has_newer_schema = has_newer_schema || now->second.served->agent_class->schema_version() >
                                               before.served->agent_class->schema_version();
    if (library.on_trial) segments.insert(segment);
  }
  begin_probation(library, std::move(segments), has_newer_schema);
}

void CodeRollouts::go_back(const std::filesystem::path& file, ServedLibrary& library,
                           const std::string& reason) {
  const VersionReport report = loader_.go_back(file, reason);
  if (!report.plugin) return;
  tell_taken_back(file, library, library.hash, reason);
  refuse_taken_back(file, library.hash);
  (void)bring_in(*report.plugin);
}

void CodeRollouts::begin_probation(ServedLibrary& library, std::set<std::string> untried,
                                   bool has_newer_schema) {
  library.code.probation.begin(parts_.clock.steady_now() + parts_.probation, std::move(untried),
                               has_newer_schema);
}

void CodeRollouts::tell_taken_back(const std::filesystem::path& file, ServedLibrary& library,
                                   const std::string& hash, const std::string& reason) {
  parts_.logger.record(
      LogLevel::kError, "reload.taken_back",
      {{"file", file.native()},
       {"sha256", hash},
       {"reason", reason},
       {"advice",
        "the version before it is served: replace the file, or run `hearth reload` to try what it "
        "holds again"}});
  count_taken_back(library);
}

void CodeRollouts::count_taken_back(ServedLibrary& library) {
  rollbacks_.add();
  library.failed_classes.clear();
  for (const auto& [segment, version] : library.classes) library.failed_classes.insert(segment);
}

void CodeRollouts::refuse(Refusal refusal) {
  const std::filesystem::path file = refusal.file;
  parts_.refused.libraries[file] = std::move(refusal);
}

void CodeRollouts::refuse_taken_back(const std::filesystem::path& file, const std::string& hash) {
  const auto why = loader_.refusal(file, hash);
  if (!why) return;
  refuse({.file = file, .rule = why->rule, .reason = why->reason, .sha256 = hash});
}

}  // namespace hearth::plugins
