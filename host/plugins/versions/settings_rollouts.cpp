#include "plugins/versions/settings_rollouts.hpp"

#include "base/close_codes.hpp"
#include "config/class_file.hpp"
#include "plugins/versions/class_news.hpp"
#include "protocol/class_segment.hpp"

#include <algorithm>
#include <utility>

namespace hearth::plugins {
namespace {

using What = ReloadOutcome::What;

// A log line names at most this many keys.
constexpr std::size_t kMaxNamedKeys = 20;

std::string named(const std::vector<std::string>& keys) {
  std::string text;
  for (std::size_t i = 0; i < std::min(keys.size(), kMaxNamedKeys); ++i)
    text += (i == 0 ? "" : ", ") + keys[i];
  if (keys.size() > kMaxNamedKeys)
    text += " and " + std::to_string(keys.size() - kMaxNamedKeys) + " more";
  return text;
}

// Of a rollout of one class.
const ClassVersion& only(const ClassVersions& versions) {
  return versions.begin()->second;
}

}  // namespace

SettingsRollouts::SettingsRollouts(const RolloutParts& parts, Metrics& metrics)
    : parts_(parts),
      changes_(metrics.counter("hearth_config_changes_total",
                               "Classes that were given other settings.")),
      refusals_(metrics.counter("hearth_config_refused_total",
                                "Changes of class files with a mistake in them; the log says "
                                "where.")),
      rollbacks_(metrics.counter("hearth_config_taken_back_total",
                                 "Settings that were taken back because agents failed on them.")) {}

// ---- class files have changed -------------------------------------------------------------------

std::set<std::string> SettingsRollouts::read(const Errand& errand, ReloadOutcomes& outcomes) {
  runtime::ClassRegistry& classes = parts_.runtime.classes();
  ClassConfiguration::ServedSegments segments;
  for (const Served& served : classes.all())
    segments.emplace(served->segment, served->agent_class->name());
  auto reading = parts_.configuration.read_again(errand.segment, errand.all, segments);
  if (!reading.mistakes.empty()) {
    refuse(reading.mistakes, outcomes);
    return {};
  }
  classes.set_aliases(parts_.configuration.aliases());
  const auto before = classes.set_entry_rules(parts_.configuration.entry_rules());
  ask_clients_anew(before);
  classes.set_egress(parts_.configuration.egress());
  for (const ClassConfiguration::Change& change : reading.changes) {
    const std::string segment = protocol::kebab_case(change.agent_class);
    const ClassConfiguration::Settings its = parts_.configuration.of(change.agent_class);
    const bool has_settings = !its->file.empty();
    if (has_settings) {
      classes.expect(segment, its->settings);
    } else {
      classes.expect_no_more(segment);
    }
    const Served served = classes.find(segment);
    outcomes.push_back(
        {.file = change.file,
         .what = What::kNewSettings,
         .agent_class = served ? std::string(served->agent_class->name()) : change.agent_class,
         .keys = change.keys});
    if (served || !has_settings) continue;
    const std::string& code = its->settings.code;
    if (code.empty() || !has_code(code)) tell_not_found(parts_.logger, change.agent_class, *its);
  }
  if (reading.other_codes) {
    for (auto& [file, library] : parts_.libraries.by_file()) library.has_its_classes = false;
  }
  parts_.refused.class_files.clear();
  return std::move(reading.segments);
}

bool SettingsRollouts::has_code(std::string_view code) const {
  const std::string segment = protocol::kebab_case(code);
  return std::ranges::any_of(parts_.libraries.by_file(), [&](const auto& each) {
    return std::ranges::any_of(each.second.classes, [&](const auto& served) {
      return protocol::kebab_case(served.second.served->agent_class->code()) == segment;
    });
  });
}

void SettingsRollouts::ask_clients_anew(const runtime::ClassRegistry::EntryTable& before) {
  const runtime::ClassRegistry& classes = parts_.runtime.classes();
  for (const Served& served : classes.all()) {
    const auto known = before.find(served->segment);
    const AuthRules was = known == before.end() ? AuthRules{} : known->second->auth;
    const AuthRules is = classes.entry_rules(served->segment)->auth;
    if (is == was || is.type == ProofKind::kNone) continue;
    const std::string agent_class(served->agent_class->name());
    parts_.runtime.tell([agent_class](runtime::ShardVersions& versions) {
      versions.end_clients(agent_class, kCloseServiceRestart, kAccessChanged);
    });
    parts_.logger.write(LogLevel::kInfo, "auth.clients_asked_anew",
                        {{"class", agent_class}, {"reason", "its auth has changed"}});
  }
}

void SettingsRollouts::refuse(const config::Diagnostics& mistakes, ReloadOutcomes& outcomes) {
  refusals_.add();
  parts_.refused.class_files.clear();
  for (const config::Diagnostic& mistake : mistakes) {
    const std::string text = to_string(mistake);
    parts_.logger.write(LogLevel::kError, "config.refused",
                        {{"file", mistake.file},
                         {"line", mistake.at.line},
                         {"column", mistake.at.column},
                         {"mistake", text},
                         {"advice", "all classes go on with the settings that they have"}});
    parts_.refused.class_files.push_back({.file = mistake.file, .rule = "config", .reason = text});
    outcomes.push_back({.file = mistake.file, .what = What::kRefused, .reason = text});
  }
}

// ---- from settings to settings ------------------------------------------------------------------

void SettingsRollouts::begin(ReloadOutcomes& outcomes) {
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
        tell_change(version, keys, 0);
        tell_done(version);
      } else {
        begin_one(library, segment, keys, outcomes);
      }
    }
    library.awaited.clear();
  }
}

void SettingsRollouts::begin_one(ServedLibrary& library, const std::string& segment,
                                 const std::vector<std::string>& keys, ReloadOutcomes& outcomes) {
  ClassVersion& version = library.classes.at(segment);
  const auto agent_class = version.served->agent_class;
  ClassVersion next = parts_.libraries.version_of(agent_class);
  begin_trial(library, next, version);
  library.code.probation.excuse();
  runtime::RolloutSettings settings = parts_.patience.settings();
  settings.awaited = library.awaited[segment];
  auto rollout =
      std::make_unique<Rollout>(parts_.runtime, parts_.clock, ClassVersions{{segment, version}});
  version = next;
  const runtime::ClassRollout& of_class = rollout->begin(std::move(next), settings);
  tell_change(version, keys, of_class.tried());
  const std::string note = parts_.patience.tell(of_class);
  for (ReloadOutcome& outcome : outcomes) {
    if (outcome.agent_class == agent_class->name()) outcome.note = note;
  }
  library.settings[segment].rollout = std::move(rollout);
  parts_.errands.stir();
}

void SettingsRollouts::tell_change(const ClassVersion& version,
                                   const std::vector<std::string>& keys, std::size_t trying) {
  parts_.logger.write(
      LogLevel::kInfo, "config.changed",
      {{"class", version.served->agent_class->name()},
       {"keys", named(keys)},
       {"file", version.settings->file.empty() ? "defaults" : version.settings->file},
       {"trying", trying}});
  if (const std::string doubts = config::doubts(*version.settings); !doubts.empty()) {
    parts_.logger.write(LogLevel::kWarn, "config.doubtful",
                        {{"class", version.served->agent_class->name()},
                         {"file", version.settings->file},
                         {"advice", doubts}});
  }
  warn_of_unlisted_kinds(parts_.logger, version);
}

void SettingsRollouts::tell_done(const ClassVersion& version) {
  parts_.logger.record(LogLevel::kInfo, "config.done",
                       {{"class", version.served->agent_class->name()}});
  changes_.add();
}

void SettingsRollouts::tell(const Errand& errand, ReloadOutcomes& outcomes) const {
  for (const auto& [file, library] : parts_.libraries.by_file()) {
    for (const auto& [segment, coming] : library.settings) {
      if (!coming.rollout || (!errand.segment.empty() && errand.segment != segment)) continue;
      const auto& before = only(coming.rollout->before()).settings;
      const auto& [served, next] = only(coming.rollout->next());
      const std::string agent_class(served->agent_class->name());
      if (std::ranges::find(outcomes, agent_class, &ReloadOutcome::agent_class) != outcomes.end())
        continue;
      outcomes.push_back({.file = next->file.empty() ? before->file : next->file,
                          .what = What::kNewSettings,
                          .agent_class = agent_class,
                          .keys = config::changed_keys(*before, *next)});
    }
  }
}

// ---- what is in progress ------------------------------------------------------------------------

void SettingsRollouts::drive() {
  for (auto& [file, library] : parts_.libraries.by_file()) {
    std::erase_if(library.settings, [&library](const auto& each) {
      const bool has_ended = !each.second.rollout && !each.second.probation.ends();
      return has_ended ||
             !library.classes.contains(each.first);  // other code has the class, or none
    });
    for (auto& [segment, coming] : library.settings)
      drive(file, library, coming, library.classes.at(segment));
  }
  ReloadOutcomes nobody_asks;
  begin(nobody_asks);  // for settings that changed while libraries were busy
}

void SettingsRollouts::drive(const std::filesystem::path& file, ServedLibrary& library,
                             Coming& coming, const ClassVersion& version) {
  if (!coming.rollout) {
    const auto judgement = coming.probation.judge({}, {}, parts_.clock.steady_now());
    if (judgement.verdict == Probation::Verdict::kProven)
      noted(parts_.configuration.prove(version.served->agent_class->name(), version.settings));
    return;
  }
  const Rollout::State state = coming.rollout->look();
  if (state != Rollout::State::kDone && state != Rollout::State::kRolledBack) return;
  const std::unique_ptr<Rollout> ended = std::move(coming.rollout);
  if (state == Rollout::State::kRolledBack) return take_back(file, library, *ended);
  tell_done(version);
  begin_probation(library, version);
}

std::vector<Refusal> SettingsRollouts::taken_back() const {
  std::vector<Refusal> taken_back;
  for (const auto& each : parts_.configuration.taken_back()) {
    taken_back.push_back({.file = each.file,
                          .rule = "R1",
                          .reason = "class " + each.agent_class +
                                    " goes on with the settings before: " + each.reason});
  }
  return taken_back;
}

void SettingsRollouts::take_back(const std::filesystem::path& file, ServedLibrary& library,
                                 const Rollout& failed) {
  const ClassVersion& before = only(failed.before());
  const ClassVersion& next = only(failed.next());
  const std::string_view agent_class = next.served->agent_class->name();
  const std::string reason = failed.reason();
  parts_.configuration.take_back(agent_class, next.settings, before.settings, reason);
  library.classes[next.served->segment] = before;
  parts_.libraries.leave(file, next.served);
  begin_probation(library, before);
  tell_taken_back(agent_class, next.settings->file, reason,
                  "the settings before go on; agent.start_failed tells more");
}

// ---- a version of the code comes in, or goes ----------------------------------------------------

void SettingsRollouts::put_off(const std::filesystem::path& file, ServedLibrary& library) {
  for (auto& [segment, coming] : library.settings) {
    if (!coming.rollout) continue;
    const Rollout::State state = coming.rollout->look();
    if (state != Rollout::State::kRolledBack && state != Rollout::State::kTrying)
      continue;  // they are proven
    const std::unique_ptr<Rollout> rollout = std::move(coming.rollout);
    if (state == Rollout::State::kRolledBack) {
      take_back(file, library, *rollout);
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

void SettingsRollouts::hurry(const std::filesystem::path& file, ServedLibrary& library,
                             const std::string& only_segment) {
  for (auto& [segment, coming] : library.settings) {
    if (!coming.rollout || (!only_segment.empty() && segment != only_segment)) continue;
    const std::unique_ptr<Rollout> rollout = std::move(coming.rollout);
    rollout->hurry();
    parts_.libraries.leave(file, only(rollout->before()).served);
    changes_.add();
    begin_probation(library, only(rollout->next()));
  }
}

// ---- the way back, after the process has ended --------------------------------------------------

void SettingsRollouts::noted(const Result<void>& outcome) {
  if (outcome) return;
  parts_.logger.write(
      LogLevel::kWarn, "config.trial_not_noted",
      {{"reason", outcome.error().message},
       {"advice",
        "if the settings of a class end the server, the settings before do not hold "
        "after the restart"}});
}

void SettingsRollouts::begin_trial(ServedLibrary& library, const ClassVersion& next,
                                   const ClassVersion& before) {
  library.settings.erase(next.served->segment);
  if (config::changed_keys(*before.settings, *next.settings).empty()) return;
  noted(parts_.configuration.begin_trial(next.served->agent_class->name(), next.settings,
                                         before.settings));
}

void SettingsRollouts::begin_probation(ServedLibrary& library, const ClassVersion& version) {
  if (parts_.configuration.is_on_trial(version.served->agent_class->name()))
    library.settings[version.served->segment].probation.begin(parts_.clock.steady_now() +
                                                              parts_.probation);
}

void SettingsRollouts::adopt() {
  for (auto& [file, library] : parts_.libraries.by_file()) {
    for (const auto& [segment, version] : library.classes) begin_probation(library, version);
  }
  for (const std::string& reason : parts_.configuration.without_way_back())
    parts_.logger.write(LogLevel::kError, "config.no_settings_before", {{"reason", reason}});
  for (const auto& each : parts_.configuration.taken_back()) {
    tell_taken_back(each.agent_class, each.file, each.reason,
                    "the settings before hold: change the file, or run `hearth reload` to try "
                    "what it says again");
  }
}

void SettingsRollouts::tell_taken_back(std::string_view agent_class, const std::string& file,
                                       const std::string& reason, std::string_view advice) {
  parts_.logger.record(LogLevel::kError, "config.taken_back",
                       {{"class", agent_class},
                        {"file", file.empty() ? "defaults" : file},
                        {"reason", reason},
                        {"advice", advice}});
  rollbacks_.add();
}

}  // namespace hearth::plugins
