// The settings of classes are replaced while their code goes on.
#include "config/class_file.hpp"
#include "plugins/versions/plugin_reloader.hpp"
#include "protocol/class_segment.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace hearth::plugins {
namespace {

// Of the keys that a line of the log names.
constexpr std::size_t kMaxNamedKeys = 20;

std::string named(const std::vector<std::string>& keys) {
  std::string text;
  for (std::size_t i = 0; i < std::min(keys.size(), kMaxNamedKeys); ++i)
    text += (i == 0 ? "" : ", ") + keys[i];
  if (keys.size() > kMaxNamedKeys)
    text += " and " + std::to_string(keys.size() - kMaxNamedKeys) + " more";
  return text;
}

}  // namespace

// ---- class files have changed -------------------------------------------------------------------

std::set<std::string> PluginReloader::read_class_files(const Errand& errand, Outcomes& outcomes) {
  ClassConfiguration::ServedSegments segments;
  for (const Served& served : runtime_.classes().all())
    segments.emplace(served->segment, served->agent_class->name());
  auto reading = settings_.configuration->read_again(errand.segment, errand.all, segments);
  if (!reading.mistakes.empty()) {
    refuse_class_files(reading.mistakes, outcomes);
    return {};
  }
  runtime_.classes().set_aliases(settings_.configuration->aliases());
  for (const ClassConfiguration::Change& change : reading.changes) {
    const std::string segment = protocol::kebab_case(change.agent_class);
    runtime_.classes().expect(segment);
    const Served served = runtime_.classes().find(segment);
    outcomes.push_back(
        {.file = change.file,
         .what = Outcome::What::kNewSettings,
         .agent_class = served ? std::string(served->agent_class->name()) : change.agent_class,
         .keys = change.keys});
    if (served) continue;
    logger_.write(
        LogLevel::kWarn, "class.not_found",
        {{"class", change.agent_class},
         {"file", change.file},
         {"advice", "no library that is served has this class: its settings are unused"}});
  }
  board_.set_mistakes({});
  return std::move(reading.segments);
}

void PluginReloader::refuse_class_files(const config::Diagnostics& mistakes, Outcomes& outcomes) {
  settings_refusals_.add();
  std::vector<Refusal> refusals;
  for (const config::Diagnostic& mistake : mistakes) {
    const std::string text = to_string(mistake);
    logger_.write(LogLevel::kError, "config.refused",
                  {{"file", mistake.file},
                   {"line", mistake.at.line},
                   {"column", mistake.at.column},
                   {"mistake", text},
                   {"advice", "all classes go on with the settings that they have"}});
    refusals.push_back({.file = mistake.file, .rule = "config", .reason = text});
    outcomes.push_back({.file = mistake.file, .what = Outcome::What::kRefused, .reason = text});
  }
  board_.set_mistakes(std::move(refusals));
}

// ---- from settings to settings ------------------------------------------------------------------

void PluginReloader::begin_moves(Outcomes& outcomes) {
  for (auto& [file, library] : libraries_) {
    if (!library.rollouts.empty()) continue;  // afterwards
    for (auto& [segment, version] : library.classes) {
      if (moves_.contains(segment)) continue;
      const auto settings = settings_.configuration->of(version.served->agent_class->name());
      if (settings == version.settings) continue;
      const std::vector<std::string> keys = config::changed_keys(*version.settings, *settings);
      if (keys.empty()) {
        version.settings = settings;  // the same values of another file
      } else if (keys == std::vector<std::string>{"aliases"}) {
        // They are there already, and no agent has to know them.
        version.settings = settings;
        tell_change(version, keys, 0);
        tell_done(version);
      } else {
        begin_move(file, segment, version, keys, outcomes);
      }
    }
    library.awaited.clear();
  }
}

void PluginReloader::begin_move(const std::filesystem::path& file, const std::string& segment,
                                Version& version, const std::vector<std::string>& keys,
                                Outcomes& outcomes) {
  const auto agent_class = version.served->agent_class;
  Move& move = moves_[segment];
  move.library = file;
  move.before = version;
  move.before.served = served_now(version);
  move.next = version_of(agent_class);
  note_trial(move.next, move.before);
  libraries_[file].untried.clear();  // agents that fail may do so because of the settings
  runtime::RolloutSettings rollout = rollout_settings();
  rollout.awaited = awaited_of(libraries_[file], segment);
  move.rollout = std::make_unique<runtime::ClassRollout>(runtime_, move.before.served,
                                                         move.next.served, rollout, clock_);
  version = move.next;
  tell_change(version, keys, move.rollout->tried());
  const std::string note = tell_silence(*move.rollout);
  for (Outcome& outcome : outcomes) {
    if (outcome.agent_class == agent_class->name()) outcome.note = note;
  }
  errands_.stir();
}

void PluginReloader::tell_change(const Version& version, const std::vector<std::string>& keys,
                                 std::size_t trying) {
  logger_.write(LogLevel::kInfo, "config.changed",
                {{"class", version.served->agent_class->name()},
                 {"keys", named(keys)},
                 {"file", version.settings->file.empty() ? "defaults" : version.settings->file},
                 {"trying", trying}});
}

void PluginReloader::tell_done(const Version& version) {
  logger_.write(LogLevel::kInfo, "config.done", {{"class", version.served->agent_class->name()}});
  settings_changes_.add();
}

void PluginReloader::drive_moves() {
  std::erase_if(moves_, [this](const auto& each) {
    const auto& [segment, move] = each;
    const runtime::RolloutState state = move.rollout->look();
    if (state == runtime::RolloutState::kRolledBack) {
      take_back(segment, move);
    } else if (state == runtime::RolloutState::kDone) {
      tell_done(move.next);
      begin_settings_probation(segment, move.next);
    } else {
      return false;
    }
    return true;
  });
  Outcomes nobody_asks;
  begin_moves(nobody_asks);  // what has changed while libraries were busy
}

void PluginReloader::tell_moves(const Errand& errand, Outcomes& outcomes) const {
  for (const auto& [segment, move] : moves_) {
    const std::string agent_class(move.next.served->agent_class->name());
    const bool is_told = std::ranges::any_of(
        outcomes, [&](const Outcome& outcome) { return outcome.agent_class == agent_class; });
    if (is_told || (!errand.segment.empty() && errand.segment != segment)) continue;
    outcomes.push_back({.file = move.next.settings->file.empty() ? move.before.settings->file
                                                                 : move.next.settings->file,
                        .what = Outcome::What::kNewSettings,
                        .agent_class = agent_class,
                        .keys = config::changed_keys(*move.before.settings, *move.next.settings)});
  }
}

void PluginReloader::take_back(const std::string& segment, const Move& move) {
  const auto& agent_class = *move.next.served->agent_class;
  const auto& [file, reason] = std::pair(move.next.settings->file, move.rollout->reason());
  settings_.configuration->take_back(agent_class.name(), move.next.settings, move.before.settings,
                                     reason);
  const auto library = libraries_.find(move.library);
  if (library != libraries_.end()) library->second.classes[segment] = move.before;
  earlier_[move.library].push_back(move.next.served);
  begin_settings_probation(segment, move.before);
  tell_settings_taken_back(agent_class.name(), file, reason,
                           "the settings before go on; agent.start_failed tells more");
}

// ---- the way back, after the process has ended --------------------------------------------------

void PluginReloader::noted(const Result<void>& outcome) {
  if (outcome) return;
  logger_.write(LogLevel::kWarn, "config.trial_not_noted",
                {{"reason", outcome.error().message},
                 {"advice",
                  "if the settings of a class end the server, the settings before do not hold "
                  "after the restart"}});
}

void PluginReloader::note_trial(const Version& next, const Version& before) {
  settings_probation_.end(next.served->segment);
  if (config::changed_keys(*before.settings, *next.settings).empty()) return;
  noted(settings_.configuration->begin_trial(next.served->agent_class->name(), next.settings,
                                             before.settings));
}

void PluginReloader::begin_settings_probation(const std::string& segment, const Version& version) {
  if (settings_.configuration->is_on_trial(version.served->agent_class->name()))
    settings_probation_.begin(segment, clock_.steady_now() + settings_.probation);
}

void PluginReloader::end_settings_probations() {
  for (const std::string& segment : settings_probation_.over(clock_.steady_now())) {
    for (const auto& [file, library] : libraries_) {
      const auto found = library.classes.find(segment);
      if (found == library.classes.end()) continue;
      const auto& [served, settings] = found->second;
      noted(settings_.configuration->prove(served->agent_class->name(), settings));
    }
  }
}

void PluginReloader::adopt_settings() {
  for (const auto& [file, library] : libraries_) {
    for (const auto& [segment, version] : library.classes)
      begin_settings_probation(segment, version);
  }
  for (const std::string& reason : settings_.configuration->without_way_back())
    logger_.write(LogLevel::kError, "config.no_settings_before", {{"reason", reason}});
  for (const auto& each : settings_.configuration->taken_back()) {
    tell_settings_taken_back(each.agent_class, each.file, each.reason,
                             "the settings before hold: change the file, or run `hearth reload` "
                             "to try what it says again");
  }
}

void PluginReloader::tell_settings_taken_back(std::string_view agent_class, const std::string& file,
                                              const std::string& reason,
                                              const std::string& advice) {
  logger_.write(LogLevel::kError, "config.taken_back",
                {{"class", agent_class},
                 {"file", file.empty() ? "defaults" : file},
                 {"reason", reason},
                 {"advice", advice}});
  settings_rollbacks_.add();
}

void PluginReloader::put_off_trials(const std::filesystem::path& file, Library& library) {
  std::erase_if(moves_, [this, &file, &library](const auto& each) {
    const auto& [segment, move] = each;
    if (move.library != file) return false;
    const runtime::RolloutState state = move.rollout->look();
    if (state == runtime::RolloutState::kRolledBack) {
      take_back(segment, move);
      return true;
    }
    if (state != runtime::RolloutState::kTrying) return false;  // they are proven
    library.awaited[segment] = move.rollout->tried();
    move.rollout->roll_back("a version of its library comes in");
    earlier_[file].push_back(move.next.served);
    library.classes[segment] = move.before;
    logger_.write(LogLevel::kInfo, "config.put_off",
                  {{"class", move.next.served->agent_class->name()},
                   {"advice", "a version of its library comes in: both are tried together"}});
    return true;
  });
}

void PluginReloader::end_moves(const std::filesystem::path& library) {
  std::erase_if(moves_, [this, &library](const auto& each) {
    const Move& move = each.second;
    if (move.library != library) return false;
    move.rollout->hurry();
    earlier_[library].push_back(move.before.served);
    settings_changes_.add();
    begin_settings_probation(each.first, move.next);
    return true;
  });
}

runtime::RolloutSettings PluginReloader::rollout_settings() const {
  runtime::RolloutSettings rollout = settings_.rollout;
  if (!silence_.empty()) rollout.patience = {};
  return rollout;
}

std::string PluginReloader::tell_silence(const runtime::ClassRollout& rollout) {
  const std::vector<unsigned> silent = rollout.silent_shards();
  if (rollout.state() != runtime::RolloutState::kTrying || silent.empty())
    return {};  // nobody has waited
  if (!silence_.empty()) return silence_;
  std::string note;
  for (const unsigned shard : silent) {
    logger_.write(LogLevel::kWarn, "reload.shard_silent",
                  {{"class", rollout.next().agent_class->name()},
                   {"shard", shard},
                   {"advice", "some agent's code holds it up; its agents follow when it goes on"}});
    note += (note.empty() ? "shard " : ", ") + std::to_string(shard);
  }
  silence_ = note + " does not answer: its agents follow when it goes on";
  return silence_;
}

}  // namespace hearth::plugins
