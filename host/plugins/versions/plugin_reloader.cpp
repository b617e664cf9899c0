#include "plugins/versions/plugin_reloader.hpp"

#include "base/escape.hpp"
#include "base/files.hpp"
#include "config/parse.hpp"

#include <algorithm>
#include <system_error>
#include <utility>

namespace hearth::plugins {
namespace {

bool is_library(const std::filesystem::path& file) {
  return file.extension() == ".so";
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
    : loader_(loader),
      runtime_(runtime),
      settings_(std::move(settings)),
      errands_(clock),
      libraries_(*settings_.configuration, settings_.describe),
      patience_(settings_.rollout, logger),
      parts_{.libraries = libraries_,
             .configuration = *settings_.configuration,
             .patience = patience_,
             .refused = refused_,
             .errands = errands_,
             .runtime = runtime,
             .clock = clock,
             .logger = logger,
             .probation = settings_.probation},
      of_settings_(parts_, metrics),
      of_code_(parts_, loader, of_settings_, settings_.removal_grace, metrics) {
  of_code_.adopt(report);
  of_settings_.adopt();
  publish();
  runtime_.classes().news()->listen([this] { errands_.stir(); });
  thread_ = std::thread([this] { serve(); });
  if (!settings_.watch) return;
  watcher_ = std::make_unique<DirectoryWatcher>(
      WatchOptions{.directories = settings_.directories, .quiet_time = settings_.quiet_time},
      settings_.known, [this](const FileChanges& changes) { errands_.notice(changes); }, logger);
}

PluginReloader::~PluginReloader() {
  watcher_.reset();
  runtime_.classes().news()->listen(nullptr);
  const std::deque<Errand> left = errands_.stop();
  thread_.join();
  for (const Errand& errand : left) {
    if (errand.answer) errand.answer(Error{Errc::kClosing, "the server is shutting down"});
  }
}

void PluginReloader::reload() {
  (void)reload({}, {});
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
  while (const std::optional<Errand> errand = errands_.next(of_code_.next_deadline())) {
    run(*errand);
    runtime_.classes().news()->want(true);  // first, for news while drive() looks
    drive();
    runtime_.classes().news()->want(of_code_.expects_news());
    publish();
  }
}

void PluginReloader::drive() {
  of_code_.drive();
  of_settings_.drive();
  libraries_.forget_left();
  of_code_.unload_unused();
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
  refusals.reserve(refused_.libraries.size());
  for (const auto& [file, refusal] : refused_.libraries) refusals.push_back(refusal);
  for (const auto& more : {refused_.class_files, of_settings_.taken_back()})
    refusals.insert(refusals.end(), more.begin(), more.end());
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
  patience_.renew();
  if (errand.takes_back) return of_code_.take_back(errand.segment);
  if (!errand.released.empty()) of_code_.release(errand.segment);
  Result<FileChanges> changes = changes_of(errand);
  Outcomes outcomes;
  if (!changes) {
    // A class that no library serves has settings too: a library that comes later gets them.
    (void)of_settings_.read(errand, outcomes);
    of_code_.follow_class_files();
    const bool is_refused = std::ranges::any_of(
        outcomes, [](const Outcome& each) { return each.what == Outcome::What::kRefused; });
    if (!is_refused && !runtime_.classes().find(errand.segment)) return changes.error();
    return outcomes;
  }
  const auto is_class_file = [](const auto& file) { return !is_library(file); };
  // First: a library that comes at the same time gets the new settings.
  if (errand.all || std::ranges::any_of(changes->changed, is_class_file) ||
      std::ranges::any_of(changes->gone, is_class_file)) {
    forgive(errand, of_settings_.read(errand, outcomes), *changes);
  }
  of_code_.follow_class_files();
  take(*changes, outcomes);
  of_code_.follow_class_files();  // a class may go to a library that has come
  of_settings_.begin(outcomes);
  if (errand.answer) of_settings_.tell(errand, outcomes);
  return outcomes;
}

void PluginReloader::forgive(const Errand& errand, const std::set<std::string>& segments,
                             FileChanges& changes) {
  for (const auto& [file, refusal] : refused_.libraries) {
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
    loader_.forgive(refusal.sha256);
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
  for (const auto& [file, refusal] : refused_.libraries) {
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
    const std::string& code = settings_.configuration->of(errand.segment)->settings.code;
    if (code.empty())
      return Error{Errc::kNotFound, "no library that is served has a class of this name"};
    return Error{Errc::kNotFound, "the class is not served: no library that is served has " +
                                      quote_text(code) +
                                      ", the class of its code, or a version of it comes in"};
  }
  return changes;
}

void PluginReloader::take(const FileChanges& changes, Outcomes& outcomes) {
  // Removed files first: a renamed file gives up its classes before the new name claims them.
  for (const auto& file : changes.gone) {
    if (!is_library(file)) continue;
    of_code_.gone(file);
    outcomes.push_back({.file = file, .what = Outcome::What::kRemoved});
  }
  for (const auto& file : changes.changed) {
    // A file that has gone since it was noticed makes news of its own.
    if (is_library(file) && is_there(file)) outcomes.push_back(of_code_.changed(file));
  }
}

}  // namespace hearth::plugins
