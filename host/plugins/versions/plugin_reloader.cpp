#include "plugins/versions/plugin_reloader.hpp"

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
  // Followed: where configuration is mounted, files are links that lead elsewhere all at once.
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
      clock_(clock),
      logger_(logger),
      settings_(std::move(settings)),
      reloads_(metrics.counter("hearth_reloads_total",
                               "Versions of libraries that took the place of another one.")),
      refusals_(metrics.counter("hearth_reloads_refused_total",
                                "Changed files that were not loaded; the log says why.")),
      rollbacks_(metrics.counter("hearth_reloads_taken_back_total",
                                 "Versions that were taken back because agents failed on them.")),
      settings_changes_(metrics.counter("hearth_config_changes_total",
                                        "Classes that were given other settings.")),
      settings_refusals_(
          metrics.counter("hearth_config_refused_total",
                          "Changes of class files with a mistake in them; the log says where.")),
      settings_rollbacks_(
          metrics.counter("hearth_config_taken_back_total",
                          "Settings that were taken back because agents failed on them.")),
      errands_(clock) {
  for (const LoadedPlugin& plugin : report.plugins) {
    Library& library = libraries_[plugin.file];
    library.generation = plugin.generation;
    for (const auto& agent_class : plugin.classes) {
      Version version = version_of(agent_class);
      const std::string segment = version.served->segment;
      version.served = runtime_.classes().find(segment);
      if (version.served) library.classes[segment] = std::move(version);
    }
    adopt_trial(plugin, report.refusals);
  }
  for (const Refusal& refusal : report.refusals) board_.refuse(refusal);
  adopt_settings();
  runtime_.classes().news()->listen([this] { errands_.stir(); });
  thread_ = std::thread([this] { serve(); });
  if (!settings_.watch) return;
  watcher_ = std::make_unique<DirectoryWatcher>(
      WatchOptions{.directories = settings_.directories, .quiet_time = settings_.quiet_time},
      settings_.known, [this](const FileChanges& changes) { errands_.notice(changes); }, logger_);
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

bool PluginReloader::serve_again(std::string segment, std::vector<std::string> hashes,
                                 std::function<void(Result<Outcomes>)> answer) {
  return errands_.add({.all = true,
                       .segment = std::move(segment),
                       .released = std::move(hashes),
                       .answer = std::move(answer)});
}

PluginReloader::Version PluginReloader::version_of(
    const std::shared_ptr<const runtime::AgentClass>& agent_class) {
  return {.served = std::make_shared<const runtime::ServedClass>(settings_.describe(agent_class)),
          .settings = settings_.configuration->of(agent_class->name())};
}

// Others may have put something else into the registry for the same code.
PluginReloader::Served PluginReloader::served_now(const Version& version) {
  const Served now = runtime_.classes().find(version.served->segment);
  const bool is_same_code = now && now->agent_class == version.served->agent_class;
  return is_same_code ? now : version.served;
}

void PluginReloader::serve() {
  while (const std::optional<Errand> errand = errands_.next(next_deadline())) {
    run(*errand);
    runtime_.classes().news()->want(true);  // first: what happens while drive() looks is told
    drive();
    runtime_.classes().news()->want(expects_news());
    publish();
  }
}

bool PluginReloader::expects_news() const {
  return busy() || retiring_ || !earlier_.empty() ||
         std::ranges::any_of(libraries_,
                             [](const auto& each) { return !each.second.untried.empty(); });
}

std::optional<SteadyTime> PluginReloader::next_deadline() const {
  std::optional<SteadyTime> next = probation_.next();
  const auto add = [&next](std::optional<SteadyTime> other) {
    if (other && (!next || *other < *next)) next = other;
  };
  add(settings_probation_.next());
  for (const auto& [file, library] : libraries_) {
    for (const auto& rollout : library.rollouts) add(rollout->next_deadline());
  }
  for (const auto& [segment, move] : moves_) add(move.rollout->next_deadline());
  for (const auto& [file, removed] : removed_) add(removed.give_up_at);
  return next;
}

bool PluginReloader::busy() const {
  return !removed_.empty() || !moves_.empty() ||
         std::ranges::any_of(libraries_,
                             [](const auto& each) { return !each.second.rollouts.empty(); });
}

void PluginReloader::publish() {
  std::vector<std::string> moving;
  const auto add = [&moving](const runtime::ClassRollout& rollout) {
    moving.emplace_back(rollout.next().agent_class->name());
  };
  for (const auto& [file, library] : libraries_) {
    for (const auto& rollout : library.rollouts) add(*rollout);
  }
  for (const auto& [segment, move] : moves_) add(*move.rollout);
  std::vector<Refusal> taken_back;
  for (const auto& each : settings_.configuration->taken_back()) {
    taken_back.push_back({.file = each.file,
                          .rule = "R1",
                          .reason = "class " + each.agent_class +
                                    " goes on with the settings before: " + each.reason});
  }
  board_.set_moving(std::move(moving));
  board_.set_taken_back(std::move(taken_back));
}

void PluginReloader::run(const Errand& errand) {
  Result<Outcomes> outcomes = look(errand);
  if (!errand.answer) return;
  publish();  // who has the answer may look at once what has become of it
  errand.answer(std::move(outcomes));
}

std::size_t PluginReloader::awaited_of(const Library& library, const std::string& segment) {
  const auto found = library.awaited.find(segment);
  return found == library.awaited.end() ? 0 : found->second;
}

// A class that was held back is served by the code that it has; no agent of it is in memory.
void PluginReloader::release(const Errand& errand) {
  for (auto& [file, library] : libraries_) {
    const auto found = library.classes.find(errand.segment);
    if (found == library.classes.end() || found->second.served->refusal.empty()) continue;
    Version next = version_of(found->second.served->agent_class);
    if (!next.served->refusal.empty()) continue;
    found->second = next;
    runtime_.classes().put(next.served);
    runtime_.class_is_back(errand.segment);
    logger_.write(LogLevel::kInfo, "class.served",
                  {{"class", next.served->agent_class->name()},
                   {"version", next.served->agent_class->version()},
                   {"library", next.served->agent_class->origin()},
                   {"path", settings_.configuration->paths(errand.segment)}});
  }
}

Result<PluginReloader::Outcomes> PluginReloader::look(const Errand& errand) {
  silence_.clear();
  if (!errand.released.empty()) release(errand);
  Result<FileChanges> changes = changes_of(errand);
  if (!changes) return changes.error();
  Outcomes outcomes;
  const auto is_class_file = [](const auto& file) { return !is_library(file); };
  // First: a library that comes at the same time is served with what they say.
  if (errand.all || std::ranges::any_of(changes->changed, is_class_file) ||
      std::ranges::any_of(changes->gone, is_class_file)) {
    forgive(errand, read_class_files(errand, outcomes), *changes);
  }
  take(*changes, outcomes);
  begin_moves(outcomes);
  if (errand.answer) tell_moves(errand, outcomes);
  return outcomes;
}

void PluginReloader::forgive(const Errand& errand, const std::set<std::string>& segments,
                             FileChanges& changes) {
  for (const Refusal& refusal : refusals()) {
    if (refusal.sha256.empty()) continue;
    const auto library = libraries_.find(refusal.file);
    const auto is_of_class = [&](const std::string& segment) {
      return library != libraries_.end() && (library->second.classes.contains(segment) ||
                                             library->second.failed_classes.contains(segment));
    };
    const bool is_meant = errand.all
                              ? errand.segment.empty() || is_of_class(errand.segment)
                              : refusal.rule == "R1" && std::ranges::any_of(segments, is_of_class);
    if (!is_meant) continue;
    loader_.forgive(refusal.sha256);
    if (std::ranges::find(changes.changed, refusal.file) == changes.changed.end())
      changes.changed.push_back(refusal.file);
  }
}

Result<FileChanges> PluginReloader::changes_of(const Errand& errand) {
  if (!errand.all) return errand.changes;
  // All files there are; those with the bytes that are served make no new version.
  DirectoryImage seen;
  for (const auto& [file, library] : libraries_) seen.emplace(file, FileStamp{});
  std::set<std::filesystem::path> held_back;  // content that was released, and is served nowhere
  for (const Refusal& refusal : board_.library_refusals()) {
    if (std::ranges::find(errand.released, refusal.sha256) != errand.released.end())
      held_back.insert(refusal.file);
    if (errand.segment.empty() || held_back.contains(refusal.file))
      seen.emplace(refusal.file, FileStamp{});
  }
  const DirectoryImage image = look_at(settings_.directories, seen);
  const auto is_meant = [&](const std::filesystem::path& file) {
    const auto found = libraries_.find(file);
    return errand.segment.empty() || held_back.contains(file) ||
           (found != libraries_.end() && found->second.classes.contains(errand.segment));
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
  if (!found) return Error{Errc::kNotFound, "no library that is served has a class of this name"};
  return changes;
}

void PluginReloader::take(const FileChanges& changes, Outcomes& outcomes) {
  // What is gone first: a file that was renamed gives its classes up before the new name claims
  // them.
  for (const auto& file : changes.gone) {
    if (!is_library(file)) continue;
    gone(file);
    outcomes.push_back({.file = file, .what = Outcome::What::kRemoved});
  }
  for (const auto& file : changes.changed) {
    // Between being noticed and being looked at it may have gone again: that is news of its own.
    if (is_library(file) && is_there(file)) outcomes.push_back(changed(file));
  }
}

// ---- a file has changed -------------------------------------------------------------------------

PluginReloader::Outcome PluginReloader::changed(const std::filesystem::path& file) {
  VersionReport report = loader_.load_version(file);
  if (libraries_.contains(file)) refuse_what_may_not_run(report);
  if (report.refusal) refusals_.add();
  if (report.refusal) {
    board_.refuse(*report.refusal);
  } else {
    board_.clear(file);
  }
  Outcome outcome;
  outcome.file = file;
  if (report.plugin && report.refusal) {  // it is back, and the version before stands in for it
    bring_in(file, *report.plugin, outcome.note);
    tell_taken_back(file, libraries_[file], report.plugin->instead_of.value_or(""),
                    report.refusal->reason);
    report.plugin.reset();
  }
  if (report.refusal) {
    outcome.what = Outcome::What::kRefused;
    outcome.reason = report.refusal->reason;
    return outcome;
  }
  if (!report.plugin) return unchanged(file);
  outcome.what = Outcome::What::kNewVersion;
  outcome.version = report.plugin->version;
  outcome.generation = report.plugin->generation;
  bring_in(file, *report.plugin, outcome.note);
  return outcome;
}

PluginReloader::Outcome PluginReloader::unchanged(const std::filesystem::path& file) const {
  Outcome outcome;
  outcome.file = file;
  const auto found = libraries_.find(file);
  if (found == libraries_.end() || found->second.rollouts.empty()) return outcome;
  outcome.what = Outcome::What::kNewVersion;
  outcome.version = found->second.rollouts.front()->next().agent_class->version();
  outcome.generation = found->second.generation;
  return outcome;
}

void PluginReloader::bring_in(const std::filesystem::path& file, const LoadedPlugin& plugin,
                              std::string& note) {
  Library& library = libraries_[file];
  put_off_trials(file, library);
  const Rollouts overtaken = overtake(file, library);
  expel_earlier(file, library);
  removed_.erase(file);
  probation_.end(file);
  begin(file, library, plugin, note);
}

// What is on its way gets there at once, and nobody looks how.
PluginReloader::Rollouts PluginReloader::overtake(const std::filesystem::path& file,
                                                  Library& library) {
  end_moves(file);
  for (const auto& rollout : library.rollouts) {
    rollout->hurry();
    if (rollout->before() != nullptr) earlier_[file].push_back(rollout->before());
  }
  if (!library.rollouts.empty() && !library.classes_before.empty()) reloads_.add();
  library.classes_before.clear();
  return std::exchange(library.rollouts, {});
}

// Two versions are enough. Other settings of the code that is served count as the same one.
void PluginReloader::expel_earlier(const std::filesystem::path& file, const Library& library) {
  std::vector<std::pair<Served, std::shared_ptr<const runtime::ShardAnswers>>> going;
  for (const Served& served : earlier_[file]) {
    const bool is_same_code = std::ranges::any_of(library.classes, [&](const auto& each) {
      return each.second.served->agent_class == served->agent_class;
    });
    if (!is_same_code)
      going.emplace_back(served, runtime_.expel_version(served, runtime::EvictReason::kCodeUpdate));
  }
  runtime_.classes().news()->want(true);
  const SteadyTime patience_ends = clock_.steady_now() + settings_.rollout.patience;
  for (const auto& [served, answers] : going) {
    // Their databases may be closed a moment later, elsewhere.
    while ((!answers->complete() || served->starts->agents > 0) &&
           errands_.wait_for_news(patience_ends)) {
    }
  }
}

// Agents that run must not move to a version that may not: the one before goes on.
void PluginReloader::refuse_what_may_not_run(VersionReport& report) {
  if (!report.plugin) return;
  std::string why;
  for (const auto& agent_class : report.plugin->classes) {
    if (why.empty()) why = settings_.describe(agent_class).refusal;
  }
  if (why.empty()) return;
  Refusal refusal{.file = report.plugin->file, .rule = "R2", .reason = why};
  const std::uint64_t generation = report.plugin->generation;
  report.plugin.reset();  // it holds the version that is to go
  loader_.take_back(refusal.file, generation, why);
  logger_.write(
      LogLevel::kError, "plugin.refused",
      {{"file", refusal.file.native()}, {"rule", refusal.rule}, {"reason", refusal.reason}});
  report.refusal = std::move(refusal);
  retiring_ = true;
}

void PluginReloader::begin(const std::filesystem::path& file, Library& library,
                           const LoadedPlugin& plugin, std::string& note) {
  library.generation_before = std::exchange(library.generation, plugin.generation);
  library.classes_before = std::exchange(library.classes, {});
  library.hash = plugin.sha256;
  library.on_trial = plugin.on_trial;
  library.untried.clear();
  library.has_newer_schema = false;
  Versions left_out = library.classes_before;
  for (const auto& agent_class : plugin.classes) {
    const Version next = version_of(agent_class);
    const std::string& segment = next.served->segment;
    left_out.erase(segment);
    library.classes[segment] = next;
    const auto old = library.classes_before.find(segment);
    if (old != library.classes_before.end()) note_trial(next, old->second);
    runtime::RolloutSettings rollout = rollout_settings();
    rollout.awaited = awaited_of(library, segment);
    library.rollouts.push_back(std::make_unique<runtime::ClassRollout>(
        runtime_, old == library.classes_before.end() ? nullptr : served_now(old->second),
        next.served, rollout, clock_));
    if (note.empty()) note = tell_silence(*library.rollouts.back());
    logger_.write(LogLevel::kInfo, "reload.begun",
                  {{"class", agent_class->name()},
                   {"version", agent_class->version()},
                   {"file", file.native()},
                   {"generation", plugin.generation},
                   {"trying", library.rollouts.back()->tried()}});
  }
  library.awaited.clear();
  if (!left_out.empty()) remove(file, left_out);
  errands_.stir();
}

// ---- a file is gone -----------------------------------------------------------------------------

void PluginReloader::gone(const std::filesystem::path& file) {
  board_.clear(file);
  const auto found = libraries_.find(file);
  if (found == libraries_.end()) return;
  loader_.forget_file(file);
  const Rollouts overtaken = overtake(file, found->second);
  const Versions classes = std::move(found->second.classes);
  libraries_.erase(found);
  probation_.end(file);
  remove(file, classes);
}

void PluginReloader::remove(const std::filesystem::path& file, const Versions& classes) {
  Removed& removed = removed_[file];
  removed.give_up_at = clock_.steady_now() + settings_.removal_grace;
  for (const auto& [segment, version] : classes) {
    runtime_.classes().remove(segment);
    runtime_.leave_version(version.served, runtime::EvictReason::kPluginRemoved, false);
    removed.segments.push_back(segment);
    settings_probation_.end(segment);
    earlier_[file].push_back(version.served);
    logger_.write(LogLevel::kWarn, "reload.removed",
                  {{"class", version.served->agent_class->name()},
                   {"file", file.native()},
                   {"advice", "its agents keep their data; put the library back to serve them"}});
  }
  retiring_ = true;
}

// ---- what is under way --------------------------------------------------------------------------

void PluginReloader::drive() {
  for (auto& [file, library] : libraries_) drive(file, library);
  drive_moves();
  const SteadyTime now = clock_.steady_now();
  end_probations();
  end_settings_probations();
  std::erase_if(removed_, [&](const auto& each) {
    if (now < each.second.give_up_at) return false;
    for (const std::string& segment : each.second.segments) {
      // Back in another library by now: then there is nothing to give up.
      if (!runtime_.classes().is_awaited(segment)) continue;
      runtime_.classes().give_up(segment);
      runtime_.class_is_gone(segment);
    }
    return true;
  });
  const auto has_left = [](const Served& served) { return served->starts->agents == 0; };
  for (auto& [file, versions] : earlier_) std::erase_if(versions, has_left);
  std::erase_if(earlier_, [](const auto& each) { return each.second.empty(); });
  if (!retiring_ || busy()) return;
  loader_.retire_unused();
  retiring_ = std::ranges::any_of(loader_.generations(), [](const GenerationInfo& each) {
    using State = GenerationInfo::State;
    return each.state == State::kDraining || each.state == State::kRetired;
  });
}

void PluginReloader::drive(const std::filesystem::path& file, Library& library) {
  if (library.rollouts.empty()) {
    goes_back(file, library, false);
    return;
  }
  bool all_done = true;
  for (const auto& rollout : library.rollouts) {
    const runtime::RolloutState state = rollout->look();
    if (state == runtime::RolloutState::kRolledBack) return take_back(file, library);
    all_done = all_done && state == runtime::RolloutState::kDone;
  }
  if (!all_done) return;
  for (const auto& rollout : library.rollouts) {
    logger_.write(LogLevel::kInfo, "reload.done",
                  {{"class", rollout->next().agent_class->name()},
                   {"version", rollout->next().agent_class->version()},
                   {"file", file.native()},
                   {"generation", library.generation}});
  }
  if (!library.classes_before.empty()) reloads_.add();
  // What the code before could not live with, this one may.
  for (const auto& rollout : library.rollouts)
    settings_.configuration->try_again(rollout->next().agent_class->name());
  watch_first_wakes(file, library);
  for (const auto& [segment, version] : library.classes) begin_settings_probation(segment, version);
  library.rollouts.clear();
  library.classes_before.clear();
  retiring_ = true;
  errands_.stir();  // for goes_back(), and for settings that have waited
}

}  // namespace hearth::plugins
