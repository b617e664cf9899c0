#include "plugins/versions/plugin_reloader.hpp"

#include "base/close_codes.hpp"
#include "base/escape.hpp"
#include "base/files.hpp"
#include "config/class_file.hpp"
#include "config/parse.hpp"
#include "plugins/versions/class_news.hpp"
#include "protocol/class_segment.hpp"

#include <algorithm>
#include <system_error>
#include <utility>

namespace hearth::plugins {
namespace {

bool is_library(const std::filesystem::path& file) {
  return file.extension() == ".so";
}

// Whether a class is served that runs this code.
bool has_code(const ServedLibraries& libraries, std::string_view code) {
  const std::string segment = protocol::kebab_case(code);
  return std::ranges::any_of(libraries.by_file(), [&](const auto& each) {
    return std::ranges::any_of(each.second.classes, [&](const auto& served) {
      return protocol::kebab_case(served.second.served->agent_class->code()) == segment;
    });
  });
}

// `before`: the rules by which clients were let in.
void ask_clients_anew(runtime::Runtime& runtime, Logger& logger,
                      const runtime::ClassRegistry::EntryTable& before) {
  const runtime::ClassRegistry& classes = runtime.classes();
  for (const Served& served : classes.all()) {
    const auto known = before.find(served->segment);
    const AuthRules was = known == before.end() ? AuthRules{} : known->second->auth;
    const AuthRules is = classes.entry_rules(served->segment)->auth;
    if (is == was || is.type == ProofKind::kNone) continue;
    const std::string agent_class(served->agent_class->name());
    runtime.tell([agent_class](runtime::ShardVersions& versions) {
      versions.end_clients(agent_class, kCloseServiceRestart, kAccessChanged);
    });
    logger.write(LogLevel::kInfo, "auth.clients_asked_anew",
                 {{"class", agent_class}, {"reason", "its auth has changed"}});
  }
}

// Adds the rollouts of settings in progress of the errand's classes that `outcomes` does not have
// yet.
void add_settings(const ServedLibraries& libraries, const Errand& errand,
                  ReloadOutcomes& outcomes) {
  for (const auto& [file, library] : libraries.by_file()) {
    for (const auto& [segment, coming] : library.settings) {
      if (!coming.rollout || (!errand.segment.empty() && errand.segment != segment)) continue;
      const auto& before = coming.rollout->before().at(segment).settings;
      const auto& [served, next] = coming.rollout->next().at(segment);
      const std::string agent_class(served->agent_class->name());
      if (std::ranges::find(outcomes, agent_class, &ReloadOutcome::agent_class) != outcomes.end())
        continue;
      outcomes.push_back({.file = next->file.empty() ? before->file : next->file,
                          .what = ReloadOutcome::What::kNewSettings,
                          .agent_class = agent_class,
                          .keys = config::changed_keys(*before, *next)});
    }
  }
}

// The agents of its version in `leaving`, if it is there, move.
void serve_if_new(const RolloutParts& parts, const std::filesystem::path& file,
                  const std::shared_ptr<const runtime::AgentClass>& agent_class,
                  ClassVersions& leaving) {
  ServedLibrary& library = parts.libraries.by_file().at(file);
  const ClassVersion next = parts.libraries.version_of(agent_class);
  const std::string& segment = next.served->segment;
  if (library.classes.contains(segment)) return;
  if (parts.libraries.is_of_another(segment, file)) {
    library.has_its_classes = false;  // a version of that library comes in: when it is in
    return;
  }
  library.classes[segment] = next;
  parts.runtime.serve(next.served);
  if (const auto before = leaving.find(segment); before != leaving.end()) {
    parts.runtime.tell([served = before->second.served](runtime::ShardVersions& versions) {
      versions.leave(served, runtime::EvictReason::kCodeUpdate, false);
    });
    leaving.erase(before);
  }
  tell_served(parts.logger, *next.served, parts.configuration.paths(segment), next.settings->file);
  warn_of_unlisted_kinds(parts.logger, next);
}

}  // namespace

std::vector<WatchedDirectory> directories_of(const std::vector<std::filesystem::path>& plugins,
                                             const std::filesystem::path& class_files) {
  std::vector<WatchedDirectory> directories;
  directories.reserve(plugins.size() + 1);
  for (const auto& path : plugins)
    directories.push_back({.path = path, .max_files = PluginLoader::kMaxFiles});
  // Links are followed: in a mounted configuration files are links whose targets change together.
  directories.push_back({.path = class_files,
                         .extensions = {".yaml", ".yml"},
                         .max_files = config::kMaxClassFiles,
                         .follows_links = true});
  return directories;
}

PluginReloader::PluginReloader(const LoadReport& report, PluginLoader& loader,
                               runtime::Runtime& runtime, const Clock& clock, Logger& logger,
                               Metrics& metrics, ReloadSettings settings)
    : settings_(std::move(settings)),
      errands_(clock),
      libraries_(*settings_.configuration, settings_.describe),
      removed_(runtime, clock, logger, settings_.removal_grace),
      parts_{.libraries = libraries_,
             .configuration = *settings_.configuration,
             .refused = refused_libraries_,
             .removed = removed_,
             .errands = errands_,
             .loader = loader,
             .runtime = runtime,
             .clock = clock,
             .logger = logger,
             .rules = settings_.rollout,
             .probation = settings_.probation},
      rollouts_(parts_, metrics),
      class_files_refused_(metrics.counter("hearth_config_refused_total",
                                           "Changes of class files with a mistake in them; the log "
                                           "says where.")) {
  rollouts_.adopt(report);
  publish();
  runtime.classes().news()->listen([this] { errands_.stir(); });
  thread_ = std::thread([this] { serve(); });
  if (!settings_.watch) return;
  watcher_ = std::make_unique<DirectoryWatcher>(
      WatchOptions{.directories = settings_.directories, .quiet_time = settings_.quiet_time},
      settings_.known, [this](const FileChanges& changes) { errands_.notice(changes); }, logger);
}

PluginReloader::~PluginReloader() {
  watcher_.reset();
  parts_.runtime.classes().news()->listen(nullptr);
  const std::deque<Errand> left = errands_.stop();
  thread_.join();
  for (const Errand& errand : left) {
    if (errand.answer) errand.answer(Error{Errc::kClosing, "the server is shutting down"});
  }
}

bool PluginReloader::reload(std::string segment, std::function<void(Result<Outcomes>)> answer) {
  return errands_.add({.all = true, .segment = std::move(segment), .answer = std::move(answer)});
}

bool PluginReloader::take_back(std::string segment, std::function<void(Result<Outcomes>)> answer) {
  return errands_.add({.all = true,
                       .segment = std::move(segment),
                       .takes_back = true,
                       .answer = std::move(answer)});
}

bool PluginReloader::serve_again(std::string segment, std::vector<std::string> hashes,
                                 std::function<void(Result<Outcomes>)> answer) {
  return errands_.add({.all = true,
                       .segment = std::move(segment),
                       .released = std::move(hashes),
                       .answer = std::move(answer)});
}

void PluginReloader::serve() {
  while (const std::optional<Errand> errand = errands_.next(rollouts_.next_deadline())) {
    run(*errand);
    parts_.runtime.classes().news()->want(true);  // first, for news while drive() looks
    const std::set<std::string> served = libraries_.segments();
    rollouts_.drive();
    Outcomes unasked;
    follow_freed(served, unasked);
    parts_.runtime.classes().news()->want(rollouts_.expects_news());
    publish();
  }
}

std::vector<Refusal> PluginReloader::refusals() const {
  const MutexLock lock(mutex_);
  return refusals_;
}

std::vector<std::string> PluginReloader::moving() const {
  const MutexLock lock(mutex_);
  return moving_;
}

void PluginReloader::publish() {
  std::vector<Refusal> refusals;
  refusals.reserve(refused_libraries_.size());
  for (const auto& [file, refusal] : refused_libraries_) refusals.push_back(refusal);
  refusals.insert(refusals.end(), refused_class_files_.begin(), refused_class_files_.end());
  for (const auto& each : parts_.configuration.taken_back()) {
    refusals.push_back({.file = each.file,
                        .rule = "R1",
                        .reason = "class " + each.agent_class +
                                  " goes on with the settings before: " + each.reason});
  }
  const MutexLock lock(mutex_);
  refusals_ = std::move(refusals);
  moving_ = libraries_.moving();
}

void PluginReloader::run(const Errand& errand) {
  Result<Outcomes> outcomes = look(errand);
  if (!errand.answer) return;
  publish();  // first: the client that gets the answer may ask for refusals() at once
  errand.answer(std::move(outcomes));
}

Result<PluginReloader::Outcomes> PluginReloader::look(const Errand& errand) {
  rollouts_.renew_patience();
  if (errand.takes_back) {
    const std::set<std::string> served = libraries_.segments();
    auto outcome = rollouts_.take_back(errand.segment);
    Outcomes unasked;
    follow_freed(served, unasked);
    return outcome;
  }
  if (!errand.released.empty()) release(errand.segment);
  Result<FileChanges> changes = changes_of(errand);
  Outcomes outcomes;
  if (!changes) {
    // A class that no library serves has settings too: a library that comes later gets them.
    (void)read(errand, outcomes);
    follow_class_files();
    const bool is_refused = std::ranges::any_of(
        outcomes, [](const Outcome& each) { return each.what == Outcome::What::kRefused; });
    if (!is_refused && !parts_.runtime.classes().find(errand.segment)) return changes.error();
    return outcomes;
  }
  const auto is_class_file = [](const auto& file) { return !is_library(file); };
  // First: a library that comes at the same time gets the new settings.
  if (errand.all || std::ranges::any_of(changes->changed, is_class_file) ||
      std::ranges::any_of(changes->gone, is_class_file)) {
    forgive(errand, read(errand, outcomes), *changes);
  }
  follow_class_files();
  take(*changes, outcomes);
  follow_class_files();  // a class may go to a library that has come
  rollouts_.begin_settings(outcomes);
  if (errand.answer) add_settings(libraries_, errand, outcomes);
  return outcomes;
}

void PluginReloader::forgive(const Errand& errand, const std::set<std::string>& segments,
                             FileChanges& changes) {
  for (const auto& [file, refusal] : refused_libraries_) {
    if (refusal.sha256.empty()) continue;
    const auto library = libraries_.by_file().find(file);
    const auto is_of_class = [&](const std::string& segment) {
      return library != libraries_.by_file().end() &&
             (library->second.classes.contains(segment) ||
              library->second.failed_classes.contains(segment));
    };
    const bool is_meant = errand.all
                              ? errand.segment.empty() || is_of_class(errand.segment)
                              : refusal.rule == "R1" && std::ranges::any_of(segments, is_of_class);
    if (!is_meant) continue;
    parts_.loader.forgive(refusal.sha256);
    if (std::ranges::find(changes.changed, file) == changes.changed.end())
      changes.changed.push_back(file);
  }
}

Result<FileChanges> PluginReloader::changes_of(const Errand& errand) {
  if (!errand.all) return errand.changes;
  // All files. A file that holds its served version makes no new version.
  DirectoryImage seen;
  for (const auto& [file, library] : libraries_.by_file()) seen.emplace(file, FileStamp{});
  std::set<std::filesystem::path> held_back;  // refused files with content that was released
  for (const auto& [file, refusal] : refused_libraries_) {
    if (std::ranges::find(errand.released, refusal.sha256) != errand.released.end())
      held_back.insert(file);
    if (errand.segment.empty() || held_back.contains(file)) seen.emplace(file, FileStamp{});
  }
  const DirectoryImage image = look_at(settings_.directories, seen);
  const auto is_meant = [&](const std::filesystem::path& file) {
    const auto found = libraries_.by_file().find(file);
    return errand.segment.empty() || held_back.contains(file) ||
           (found != libraries_.by_file().end() && found->second.classes.contains(errand.segment));
  };
  FileChanges changes;
  bool found = errand.segment.empty();
  for (const auto& [file, stamp] : seen) {
    if (!is_meant(file)) continue;
    found = true;
    if (!image.contains(file)) changes.gone.push_back(file);
  }
  for (const auto& [file, stamp] : image) {
    if (is_library(file) && is_meant(file)) changes.changed.push_back(file);
  }
  if (!found) {
    const std::string& code = parts_.configuration.of(errand.segment)->settings.code;
    if (code.empty())
      return Error{Errc::kNotFound, "no library that is served has a class of this name"};
    return Error{Errc::kNotFound, "the class is not served: no library that is served has " +
                                      quote_text(code) +
                                      ", the class of its code, or a version of it comes in"};
  }
  return changes;
}

void PluginReloader::take(const FileChanges& changes, Outcomes& outcomes) {
  const std::set<std::string> served = libraries_.segments();
  // Removed files first: a renamed file gives up its classes before the new name claims them.
  for (const auto& file : changes.gone) {
    if (!is_library(file)) continue;
    rollouts_.gone(file);
    outcomes.push_back({.file = file, .what = Outcome::What::kRemoved});
  }
  for (const auto& file : changes.changed) {
    // A file that has gone since it was noticed makes news of its own.
    if (is_library(file) && is_there(file)) outcomes.push_back(rollouts_.changed(file));
  }
  follow_freed(served, outcomes);
}

void PluginReloader::follow_freed(const std::set<std::string>& served, Outcomes& outcomes) {
  const std::set<std::string> still_served = libraries_.segments();
  if (std::ranges::includes(still_served, served)) return;
  std::vector<std::filesystem::path> waiting;
  for (const auto& [file, refusal] : refused_libraries_) {
    if (refusal.rule == "C1" && is_there(file)) waiting.push_back(file);
  }
  for (const auto& file : waiting) {
    std::erase_if(outcomes, [&file](const Outcome& each) { return each.file == file; });
    outcomes.push_back(rollouts_.changed(file));
  }
}

// ---- class files --------------------------------------------------------------------------------

std::set<std::string> PluginReloader::read(const Errand& errand, Outcomes& outcomes) {
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
  ask_clients_anew(parts_.runtime, parts_.logger, before);
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
         .what = Outcome::What::kNewSettings,
         .agent_class = served ? std::string(served->agent_class->name()) : change.agent_class,
         .keys = change.keys});
    if (served || !has_settings) continue;
    const std::string& code = its->settings.code;
    if (code.empty() || !has_code(libraries_, code))
      tell_not_found(parts_.logger, change.agent_class, *its);
  }
  if (reading.other_codes) {
    for (auto& [file, library] : libraries_.by_file()) library.has_its_classes = false;
  }
  refused_class_files_.clear();
  return std::move(reading.segments);
}

void PluginReloader::refuse(const config::Diagnostics& mistakes, Outcomes& outcomes) {
  class_files_refused_.add();
  refused_class_files_.clear();
  for (const config::Diagnostic& mistake : mistakes) {
    const std::string text = to_string(mistake);
    parts_.logger.write(LogLevel::kError, "config.refused",
                        {{"file", mistake.file},
                         {"line", mistake.at.line},
                         {"column", mistake.at.column},
                         {"mistake", text},
                         {"advice", "all classes go on with the settings that they have"}});
    refused_class_files_.push_back({.file = mistake.file, .rule = "config", .reason = text});
    outcomes.push_back({.file = mistake.file, .what = Outcome::What::kRefused, .reason = text});
  }
}

void PluginReloader::follow_class_files() {
  std::map<std::filesystem::path, PluginLoader::Classes> wanted;
  ClassVersions leaving;
  for (auto& [file, library] : libraries_.by_file()) {
    if (library.has_its_classes || library.code.rollout) continue;
    auto classes = parts_.loader.classes_of(file);
    if (!classes) continue;
    library.has_its_classes = true;
    give_up_others(file, library, *classes, leaving);
    wanted.emplace(file, *std::move(classes));
  }
  // Second: a class may go from one library to another.
  for (const auto& [file, classes] : wanted) {
    for (const auto& agent_class : classes) serve_if_new(parts_, file, agent_class, leaving);
  }
  for (const auto& [segment, version] : leaving) {
    const auto now = parts_.configuration.of(segment);
    removed_.remove(now->file.empty() ? version.settings->file : now->file, {{segment, version}},
                    "its agents keep their data; they come back once a library that is served has "
                    "the code that the class file names");
  }
}

void PluginReloader::give_up_others(const std::filesystem::path& file, ServedLibrary& library,
                                    const PluginLoader::Classes& wanted, ClassVersions& leaving) {
  std::erase_if(library.classes, [&](const auto& each) {
    const auto& [segment, version] = each;
    const runtime::AgentClass& now = *version.served->agent_class;
    const bool stays = std::ranges::any_of(wanted, [&now](const auto& agent_class) {
      return agent_class->name() == now.name() && agent_class->code() == now.code();
    });
    if (stays) return false;
    rollouts_.hurry_settings(file, library, segment);
    library.code.probation.forget(segment);
    libraries_.leave(file, version.served);
    leaving.emplace(segment, version);
    return true;
  });
}

void PluginReloader::release(const std::string& segment) {
  for (auto& [file, library] : libraries_.by_file()) {
    const auto found = library.classes.find(segment);
    if (found == library.classes.end() || found->second.served->refusal.empty()) continue;
    ClassVersion next = libraries_.version_of(found->second.served->agent_class);
    if (!next.served->refusal.empty()) continue;
    found->second = next;
    parts_.runtime.serve(next.served);
    tell_served(parts_.logger, *next.served, parts_.configuration.paths(segment),
                next.settings->file);
  }
}

}  // namespace hearth::plugins
