#include "plugins/versions/rollouts.hpp"

#include "config/class_file.hpp"
#include "plugins/versions/class_news.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace hearth::plugins {
namespace {

using What = ReloadOutcome::What;

constexpr std::string_view kOtherIsServed =
    "the version before it is served: replace the file, or run `hearth reload` to try what it "
    "holds again";

// Of a rollout of one class.
const ClassVersion& only(const ClassVersions& versions) {
  return versions.begin()->second;
}

// Ends the rollout in progress, if there is one: its agents move at once, and are not judged. Keep
// the result, of code, until another version serves the classes: then agents that could not start
// meet that version.
std::unique_ptr<Rollout> hurry(const RolloutParts& parts, const std::filesystem::path& file,
                               Coming& coming, Counter& moved) {
  std::unique_ptr<Rollout> rollout = std::move(coming.rollout);
  if (!rollout) return nullptr;
  rollout->hurry();
  for (Served& served : rollout->overtaken()) parts.libraries.leave(file, std::move(served));
  if (!rollout->before().empty()) moved.add();
  return rollout;
}

SteadyTime probation_ends(const RolloutParts& parts) {
  return parts.clock.steady_now() + parts.probation;
}

// ---- code ---------------------------------------------------------------------------------------

// The outcome for a file that holds the version that is served or comes in.
ReloadOutcome unchanged(const ServedLibraries& libraries, const std::filesystem::path& file) {
  ReloadOutcome outcome{.file = file};
  const auto found = libraries.by_file().find(file);
  if (found == libraries.by_file().end()) return outcome;
  const auto& [library_file, library] = *found;
  if (!library.code.rollout || library.code.rollout->next().empty()) return outcome;
  outcome.what = What::kNewVersion;
  outcome.version = library.code.rollout->next().begin()->second.served->agent_class->version();
  outcome.generation = library.generation;
  return outcome;
}

// Live agents must not move to a version that may not run: the version before goes on. True: it may
// not.
bool refuse_what_may_not_run(const RolloutParts& parts, VersionReport& report) {
  if (!report.plugin) return false;
  std::string why;
  for (const auto& agent_class : report.plugin->classes) {
    if (why.empty()) why = parts.libraries.version_of(agent_class).served->refusal;
  }
  if (why.empty()) return false;
  Refusal refusal{.file = report.plugin->file, .rule = "R2", .reason = why};
  const std::uint64_t generation = report.plugin->generation;
  report.plugin.reset();  // it would keep the version in use
  parts.loader.take_back(refusal.file, generation, why);
  parts.logger.record(
      LogLevel::kError, "plugin.refused",
      {{"file", refusal.file.native()}, {"rule", refusal.rule}, {"reason", refusal.reason}});
  report.refusal = std::move(refusal);
  return true;
}

// Evicts the agents of versions before the served one. The same code with other settings counts as
// the served version.
void expel_earlier(const RolloutParts& parts, const std::filesystem::path& file) {
  std::vector<std::pair<Served, std::shared_ptr<const runtime::ShardAnswers>>> going;
  for (Served& served : parts.libraries.with_other_code(file)) {
    auto answers = parts.runtime.ask([served](runtime::ShardVersions& versions) {
      versions.expel(served, runtime::EvictReason::kCodeUpdate);
    });
    going.emplace_back(std::move(served), std::move(answers));
  }
  parts.runtime.classes().news()->want(true);
  const SteadyTime patience_ends = parts.clock.steady_now() + parts.rules.patience;
  for (const auto& [served, answers] : going) {
    // Their databases may be closed a moment later, on another thread.
    while ((!answers->complete() || served->starts->agents > 0) &&
           parts.errands.wait_for_news(patience_ends)) {
    }
  }
}

// Serves the version before again. Returns the classes that only the failed version had.
ClassVersions restore_before(runtime::Runtime& runtime, ServedLibrary& library,
                             const Rollout& failed) {
  library.generation = library.generation_before;
  library.has_its_classes = false;  // class files may have changed since
  ClassVersions added = std::exchange(library.classes, failed.before());
  std::erase_if(library.classes, [&](const auto& each) {
    const auto& [segment, version] = each;
    added.erase(segment);
    const Served now = runtime.classes().find(segment);
    if (!now) runtime.serve(version.served);  // the version lacked it
    if (!now || now == version.served) return false;
    library.code.probation.forget(segment);  // the version lacked it, and another library has it
    return true;
  });
  return added;
}

// `goes_on`: the hash of the version that is served.
void refuse_taken_back(const RolloutParts& parts, const std::filesystem::path& file,
                       const std::string& hash, const std::string& goes_on) {
  if (const auto known = parts.refused.find(file);
      known != parts.refused.end() && known->second.sha256 == goes_on && !goes_on.empty()) {
    parts.refused.erase(known);  // the version before it has failed too
    return;
  }
  const auto why = parts.loader.refusal(file, hash);
  if (why)
    parts.refused[file] = {.file = file, .rule = why->rule, .reason = why->reason, .sha256 = hash};
}

// ---- settings -----------------------------------------------------------------------------------

void note_failure(Logger& logger, const Result<void>& outcome) {
  if (outcome) return;
  logger.write(LogLevel::kWarn, "config.trial_not_noted",
               {{"reason", outcome.error().message},
                {"advice",
                 "if the settings of a class end the server, the settings before do not hold "
                 "after the restart"}});
}

// Tells the ledger that `next` is about to replace `before`.
void begin_trial(const RolloutParts& parts, ServedLibrary& library, const ClassVersion& next,
                 const ClassVersion& before) {
  library.settings.erase(next.served->segment);
  if (config::changed_keys(*before.settings, *next.settings).empty()) return;
  note_failure(parts.logger, parts.configuration.begin_trial(next.served->agent_class->name(),
                                                             next.settings, before.settings));
}

// All agents have these settings. Does nothing if they are not on trial.
void begin_settings_probation(const RolloutParts& parts, ServedLibrary& library,
                              const ClassVersion& version) {
  if (parts.configuration.is_on_trial(version.served->agent_class->name()))
    library.settings[version.served->segment].probation.begin(probation_ends(parts));
}

}  // namespace

Rollouts::Rollouts(const RolloutParts& parts, Metrics& metrics)
    : parts_(parts),
      reloads_(metrics.counter("hearth_reloads_total",
                               "Versions of libraries that took the place of another one.")),
      refusals_(metrics.counter("hearth_reloads_refused_total",
                                "Changed files that were not loaded; the log says why.")),
      rollbacks_(metrics.counter("hearth_reloads_taken_back_total",
                                 "Versions that were taken back because agents failed on them.")),
      settings_changes_(metrics.counter("hearth_config_changes_total",
                                        "Classes that were given other settings.")),
      settings_rollbacks_(
          metrics.counter("hearth_config_taken_back_total",
                          "Settings that were taken back because agents failed on them.")) {}

void Rollouts::adopt(const LoadReport& report) {
  for (const Refusal& refusal : report.refusals) parts_.refused[refusal.file] = refusal;
  for (const LoadedPlugin& plugin : report.plugins) {
    ServedLibrary& library = parts_.libraries.by_file()[plugin.file];
    library.generation = plugin.generation;
    library.hash = plugin.sha256;
    library.on_trial = plugin.on_trial;
    for (const auto& agent_class : plugin.classes) {
      ClassVersion version = parts_.libraries.version_of(agent_class);
      const std::string segment = version.served->segment;
      version.served = parts_.runtime.classes().find(segment);
      if (!version.served) continue;
      warn_of_unlisted_kinds(parts_.logger, version);
      library.classes[segment] = std::move(version);
    }
    if (plugin.on_trial) library.begin_probation(probation_ends(parts_), {});
    if (!plugin.instead_of) continue;
    const auto refusal = parts_.refused.find(plugin.file);
    tell_taken_back(plugin.file, library, {"sha256", *plugin.instead_of},
                    refusal == parts_.refused.end() ? std::string() : refusal->second.reason,
                    kOtherIsServed);
  }
  for (auto& [file, library] : parts_.libraries.by_file()) {
    for (const auto& [segment, version] : library.classes)
      begin_settings_probation(parts_, library, version);
  }
  for (const std::string& reason : parts_.configuration.without_way_back())
    parts_.logger.write(LogLevel::kError, "config.no_settings_before", {{"reason", reason}});
  for (const auto& each : parts_.configuration.taken_back()) {
    tell_settings_taken_back(parts_.logger, each.agent_class, each.file, each.reason,
                             "the settings before hold: change the file, or run `hearth reload` to "
                             "try what it says again");
    settings_rollbacks_.add();
  }
}

bool Rollouts::expects_news() const {
  return parts_.removed.any() || parts_.libraries.is_moving() || retiring_ ||
         parts_.libraries.has_leaving() ||
         std::ranges::any_of(parts_.libraries.by_file(), [](const auto& each) {
           return each.second.code.probation.expects_wakes();
         });
}

std::optional<SteadyTime> Rollouts::next_deadline() const {
  return earlier(parts_.libraries.next_deadline(), parts_.removed.next_deadline());
}

// ---- the beginning ------------------------------------------------------------------------------

const runtime::ClassRollout& Rollouts::begin(ServedLibrary& library, Rollout& rollout,
                                             const ClassVersion& next) {
  const std::string& segment = next.served->segment;
  if (const auto before = rollout.before().find(segment); before != rollout.before().end())
    begin_trial(parts_, library, next, before->second);
  library.classes[segment] = next;
  runtime::RolloutSettings settings = parts_.rules;
  if (!silence_.empty()) settings.patience = {};
  settings.awaited = library.awaited[segment];
  return rollout.begin(next, settings);
}

std::string Rollouts::silence_of(const runtime::ClassRollout& rollout) {
  const std::vector<unsigned> silent = rollout.silent_shards();
  if (rollout.state() != runtime::RolloutState::kTrying || silent.empty())
    return {};  // the rollout has not waited
  if (!silence_.empty()) return silence_;
  std::string note;
  for (const unsigned shard : silent) {
    parts_.logger.write(
        LogLevel::kWarn, "reload.shard_silent",
        {{"class", rollout.next().agent_class->name()},
         {"shard", shard},
         {"advice", "some agent's code holds it up; its agents follow when it goes on"}});
    note += (note.empty() ? "shard " : ", ") + std::to_string(shard);
  }
  silence_ = note + " does not answer: its agents follow when it goes on";
  return silence_;
}

std::string Rollouts::bring_in(const LoadedPlugin& plugin) {
  const std::filesystem::path& file = plugin.file;
  ServedLibrary& library = parts_.libraries.by_file()[file];
  put_off_settings(file, library);
  const std::unique_ptr<Rollout> overtaken = overtake(file, library);
  // In case that it goes on.
  if (overtaken) library.begin_probation(probation_ends(parts_), overtaken->before());
  expel_earlier(parts_, file);
  std::string note = begin(file, library, plugin);
  parts_.removed.end(file);
  return note;
}

std::string Rollouts::begin(const std::filesystem::path& file, ServedLibrary& library,
                            const LoadedPlugin& plugin) {
  library.generation_before = std::exchange(library.generation, plugin.generation);
  library.hash = plugin.sha256;
  library.on_trial = plugin.on_trial;
  library.has_its_classes = true;
  ClassVersions left_out = std::exchange(library.classes, {});
  library.code.rollout = std::make_unique<Rollout>(parts_.runtime, parts_.clock, left_out);
  std::string note;
  for (const auto& agent_class : plugin.classes) {
    const ClassVersion next = parts_.libraries.version_of(agent_class);
    const std::string& segment = next.served->segment;
    if (parts_.libraries.is_of_another(segment, file)) {
      library.has_its_classes = false;  // its class file has changed: follow_class_files()
      continue;
    }
    left_out.erase(segment);
    const runtime::ClassRollout& of_class = begin(library, *library.code.rollout, next);
    const std::string silence = silence_of(of_class);
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

void Rollouts::begin_settings(ReloadOutcomes& outcomes) {
  for (auto& [file, library] : parts_.libraries.by_file()) {
    if (library.code.rollout) continue;  // when its code is in
    for (auto& [segment, version] : library.classes) {
      if (const auto known = library.settings.find(segment);
          known != library.settings.end() && known->second.rollout)
        continue;
      const auto settings = parts_.configuration.of(version.served->agent_class->name());
      if (settings == version.settings) continue;
      const std::vector<std::string> keys = config::changed_keys(*version.settings, *settings);
      if (keys.empty()) {
        version.settings = settings;  // the same values of another file
      } else if (std::ranges::all_of(keys, config::is_untried)) {
        // These settings hold at once, and agents do not see them.
        version.settings = settings;
        tell_new_settings(parts_.logger, version, keys, 0);
        tell_settings_done(parts_.logger, version);
        settings_changes_.add();
      } else {
        begin_settings_of(library, version, keys, outcomes);
      }
    }
    library.awaited.clear();
  }
}

void Rollouts::begin_settings_of(ServedLibrary& library, const ClassVersion& before,
                                 const std::vector<std::string>& keys, ReloadOutcomes& outcomes) {
  const ClassVersion next = parts_.libraries.version_of(before.served->agent_class);
  const std::string& segment = next.served->segment;
  library.code.probation.excuse(segment);
  auto rollout =
      std::make_unique<Rollout>(parts_.runtime, parts_.clock, ClassVersions{{segment, before}});
  const runtime::ClassRollout& of_class = begin(library, *rollout, next);
  tell_new_settings(parts_.logger, next, keys, of_class.tried());
  const std::string note = silence_of(of_class);
  for (ReloadOutcome& outcome : outcomes) {
    if (outcome.agent_class == next.served->agent_class->name()) outcome.note = note;
  }
  library.settings[segment].rollout = std::move(rollout);
  parts_.errands.stir();
}

// ---- files have changed -------------------------------------------------------------------------

ReloadOutcome Rollouts::changed(const std::filesystem::path& file) {
  VersionReport report = parts_.loader.load_version(file);
  if (parts_.libraries.by_file().contains(file) && refuse_what_may_not_run(parts_, report))
    retiring_ = true;
  if (report.refusal) {
    refusals_.add();
    parts_.refused[file] = *report.refusal;
  } else {
    parts_.refused.erase(file);
  }
  if (!report.refusal && !report.plugin) return unchanged(parts_.libraries, file);
  ReloadOutcome outcome{.file = file};
  if (report.plugin) outcome.note = bring_in(*report.plugin);
  if (report.refusal) {
    outcome.what = What::kRefused;
    outcome.reason = report.refusal->reason;
    if (report.plugin)  // the file is back, but the version before is served
      tell_taken_back(file, parts_.libraries.by_file()[file],
                      {"sha256", report.plugin->instead_of.value_or("")}, report.refusal->reason,
                      kOtherIsServed);
    return outcome;
  }
  outcome.what = What::kNewVersion;
  outcome.version = report.plugin->version;
  outcome.generation = report.plugin->generation;
  return outcome;
}

std::unique_ptr<Rollout> Rollouts::overtake(const std::filesystem::path& file,
                                            ServedLibrary& library) {
  for (const auto& [segment, coming] : library.settings) hurry_settings(file, library, segment);
  return hurry(parts_, file, library.code, reloads_);
}

void Rollouts::hurry_settings(const std::filesystem::path& file, ServedLibrary& library,
                              const std::string& segment) {
  const auto coming = library.settings.find(segment);
  if (coming == library.settings.end()) return;
  if (const auto rollout = hurry(parts_, file, coming->second, settings_changes_))
    begin_settings_probation(parts_, library, only(rollout->next()));
}

void Rollouts::gone(const std::filesystem::path& file) {
  parts_.refused.erase(file);
  const auto found = parts_.libraries.by_file().find(file);
  if (found == parts_.libraries.by_file().end()) return;
  parts_.loader.forget_file(file);
  const std::unique_ptr<Rollout> overtaken = overtake(file, found->second);
  const ClassVersions classes = std::move(found->second.classes);
  parts_.libraries.by_file().erase(found);
  remove(file, classes);
}

void Rollouts::remove(const std::filesystem::path& file, const ClassVersions& classes) {
  parts_.removed.remove(file, classes,
                        "its agents keep their data; put the library back to serve them");
  for (const auto& [segment, version] : classes) parts_.libraries.leave(file, version.served);
  retiring_ = true;
}

// ---- what is in progress ------------------------------------------------------------------------

void Rollouts::drive() {
  for (auto& [file, library] : parts_.libraries.by_file()) drive_code(file, library);
  parts_.removed.drive();
  for (auto& [file, library] : parts_.libraries.by_file()) {
    std::erase_if(library.settings, [&library](const auto& each) {
      const bool has_ended = !each.second.rollout && !each.second.probation.ends();
      return has_ended ||
             !library.classes.contains(each.first);  // other code has the class, or none
    });
    for (auto& [segment, coming] : library.settings)
      drive_settings(file, library, coming, library.classes.at(segment));
  }
  ReloadOutcomes nobody_asks;
  begin_settings(nobody_asks);  // for settings that changed while libraries were busy
  parts_.libraries.forget_left();
  if (!retiring_ || parts_.removed.any() || parts_.libraries.is_moving()) return;
  parts_.loader.retire_unused();
  retiring_ = std::ranges::any_of(parts_.loader.generations(), [](const GenerationInfo& each) {
    using State = GenerationInfo::State;
    return each.state == State::kDraining || each.state == State::kRetired;
  });
}

void Rollouts::drive_code(const std::filesystem::path& file, ServedLibrary& library) {
  if (!library.code.rollout) {
    const auto starts_of = [&](const std::string& segment) {
      return served_now(parts_.runtime, library.classes.at(segment))->starts;
    };
    const auto [verdict, reason] =
        library.code.probation.judge(starts_of, parts_.rules, parts_.clock.steady_now());
    if (verdict == Probation::Verdict::kProven) parts_.loader.prove(file);
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

void Rollouts::finish(const std::filesystem::path& file, ServedLibrary& library) {
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
  library.begin_probation(probation_ends(parts_), library.code.rollout->before());
  for (const auto& [segment, version] : library.classes)
    begin_settings_probation(parts_, library, version);
  library.code.rollout.reset();
  retiring_ = true;
  parts_.errands.stir();  // for goes_back(), and for settings that have waited
}

void Rollouts::drive_settings(const std::filesystem::path& file, ServedLibrary& library,
                              Coming& coming, const ClassVersion& version) {
  if (!coming.rollout) {
    const auto judgement = coming.probation.judge({}, {}, parts_.clock.steady_now());
    if (judgement.verdict == Probation::Verdict::kProven)
      note_failure(parts_.logger, parts_.configuration.prove(version.served->agent_class->name(),
                                                             version.settings));
    return;
  }
  const Rollout::State state = coming.rollout->look();
  if (state != Rollout::State::kDone && state != Rollout::State::kRolledBack) return;
  const std::unique_ptr<Rollout> ended = std::move(coming.rollout);
  if (state == Rollout::State::kRolledBack) return take_settings_back(file, library, *ended);
  tell_settings_done(parts_.logger, version);
  settings_changes_.add();
  begin_settings_probation(parts_, library, version);
}

// ---- the way back -------------------------------------------------------------------------------

Result<ReloadOutcomes> Rollouts::take_back(const std::string& segment) {
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
      return ReloadOutcomes{{.file = file, .what = What::kRefused, .reason = reason}};
    return Error{Errc::kConflict,
                 "its version is not on trial, or no version before it was kept that can be served "
                 "(then the server's log says why: plugin.no_version_before)"};
  }
  return Error{Errc::kNotFound, "no library serves this class"};
}

void Rollouts::take_back(const std::filesystem::path& file, ServedLibrary& library) {
  const std::unique_ptr<Rollout> failed = std::move(library.code.rollout);
  const std::string reason = failed->reason();
  failed->roll_back(reason);
  const std::string hash =
      std::exchange(library.hash, parts_.loader.take_back(file, library.generation, reason));
  tell_taken_back(file, library, {"generation", library.generation}, reason,
                  "the version before it goes on; agent.start_failed tells more");
  refuse_taken_back(parts_, file, hash, library.hash);
  // The agents that failed are not in memory now. They must still judge settings that follow alone.
  for (const auto& [segment, agents] : failed->tried()) library.awaited[segment] = agents;
  for (const auto& [segment, version] : failed->next())
    parts_.libraries.leave(file, library.classes.at(segment).served);
  library.code.probation.begin_again(probation_ends(parts_));
  const ClassVersions added = restore_before(parts_.runtime, library, *failed);
  for (const auto& [segment, version] : library.classes)
    begin_settings_probation(parts_, library, version);
  parts_.removed.end(file);
  if (!added.empty()) remove(file, added);  // nothing else serves these
  retiring_ = true;
  parts_.errands.stir();
}

void Rollouts::go_back(const std::filesystem::path& file, ServedLibrary& library,
                       const std::string& reason) {
  const VersionReport report = parts_.loader.go_back(file, reason);
  if (!report.plugin) {  // it goes on, and is proven once it has run for another while
    if (!library.code.probation.ends()) library.code.probation.begin_again(probation_ends(parts_));
    return;
  }
  tell_taken_back(file, library, {"sha256", library.hash}, reason, kOtherIsServed);
  refuse_taken_back(parts_, file, library.hash, report.plugin->sha256);
  (void)bring_in(*report.plugin);
}

void Rollouts::tell_taken_back(const std::filesystem::path& file, ServedLibrary& library,
                               const LogField& version, const std::string& reason,
                               std::string_view advice) {
  parts_.logger.record(LogLevel::kError, "reload.taken_back",
                       {{"file", file.native()}, version, {"reason", reason}, {"advice", advice}});
  rollbacks_.add();
  library.failed_classes.clear();
  for (const auto& [segment, its] : library.classes) library.failed_classes.insert(segment);
}

void Rollouts::put_off_settings(const std::filesystem::path& file, ServedLibrary& library) {
  for (auto& [segment, coming] : library.settings) {
    if (!coming.rollout) continue;
    const Rollout::State state = coming.rollout->look();
    if (state != Rollout::State::kRolledBack && state != Rollout::State::kTrying)
      continue;  // they are proven
    const std::unique_ptr<Rollout> rollout = std::move(coming.rollout);
    if (state == Rollout::State::kRolledBack) {
      take_settings_back(file, library, *rollout);
      continue;
    }
    for (const auto& [of_class, agents] : rollout->tried()) library.awaited[of_class] = agents;
    rollout->roll_back("a version of its library comes in");
    const Served served = only(rollout->next()).served;
    parts_.libraries.leave(file, served);
    library.classes[segment] = only(rollout->before());
    parts_.logger.write(LogLevel::kInfo, "config.put_off",
                        {{"class", served->agent_class->name()},
                         {"advice", "a version of its library comes in: both are tried together"}});
  }
}

void Rollouts::take_settings_back(const std::filesystem::path& file, ServedLibrary& library,
                                  const Rollout& failed) {
  const ClassVersion& before = only(failed.before());
  const ClassVersion& next = only(failed.next());
  const std::string_view agent_class = next.served->agent_class->name();
  const std::string reason = failed.reason();
  parts_.configuration.take_back(agent_class, next.settings, before.settings, reason);
  library.classes[next.served->segment] = before;
  parts_.libraries.leave(file, next.served);
  begin_settings_probation(parts_, library, before);
  tell_settings_taken_back(parts_.logger, agent_class, next.settings->file, reason,
                           "the settings before go on; agent.start_failed tells more");
  settings_rollbacks_.add();
}

}  // namespace hearth::plugins
