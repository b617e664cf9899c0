#include "app/plugin_reloader.hpp"

#include <algorithm>
#include <utility>

namespace hearth::app {
namespace {

using std::chrono::milliseconds;

// How often what is under way is looked at, and how often versions that nobody may use any more.
constexpr milliseconds kBusyTick{20};
constexpr milliseconds kRetireTick{500};

// Each is somebody who waits for an answer.
constexpr std::size_t kMaxErrands = 64;

constexpr std::size_t kMaxFiles = loader::PluginLoader::kMaxFiles;

}  // namespace

PluginReloader::PluginReloader(const loader::LoadReport& report, loader::PluginLoader& loader,
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
                                 "Versions that were taken back because agents failed on them.")) {
  for (const loader::LoadedPlugin& plugin : report.plugins) {
    Library& library = libraries_[plugin.file];
    library.generation = plugin.generation;
    for (const auto& agent_class : plugin.classes) {
      const std::string segment = settings_.describe(agent_class).segment;
      if (Served served = runtime_.classes().find(segment)) library.classes[segment] = served;
    }
  }
  for (const loader::Refusal& refusal : report.refusals) refused_[refusal.file] = refusal;
  thread_ = std::thread([this] { serve(); });
  if (!settings_.watch) return;
  watcher_ = std::make_unique<loader::DirectoryWatcher>(
      loader::WatchOptions{.directories = settings_.directories,
                           .max_files = kMaxFiles,
                           .quiet_time = settings_.quiet_time},
      settings_.known,
      [this](const loader::FileChanges& changes) {
        Errand errand;
        errand.changes = changes;
        send(std::move(errand));
      },
      logger_);
}

PluginReloader::~PluginReloader() {
  watcher_.reset();
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
    news_.notify_one();
  }
  thread_.join();
  for (const Errand& errand : errands_) {
    if (errand.answer) errand.answer(Error{Errc::kClosing, "the server is shutting down"});
  }
}

void PluginReloader::reload() {
  (void)reload({}, {});
}

bool PluginReloader::reload(std::string segment, std::function<void(Result<Outcomes>)> answer) {
  Errand errand;
  errand.all = true;
  errand.segment = std::move(segment);
  errand.answer = std::move(answer);
  const std::scoped_lock lock(mutex_);
  if (errand.answer) {
    if (errands_.size() >= kMaxErrands) return false;
  } else if (std::ranges::any_of(
                 errands_, [](const Errand& each) { return each.all && each.segment.empty(); })) {
    return true;  // that one looks as well, and later than now
  }
  errands_.push_back(std::move(errand));
  news_.notify_one();
  return true;
}

void PluginReloader::send(Errand errand) {
  const std::scoped_lock lock(mutex_);
  errands_.push_back(std::move(errand));
  news_.notify_one();
}

std::vector<loader::Refusal> PluginReloader::refusals() {
  const std::scoped_lock lock(mutex_);
  std::vector<loader::Refusal> list;
  for (const auto& [file, refusal] : refused_) list.push_back(refusal);
  return list;
}

void PluginReloader::serve() {
  for (;;) {
    Errand errand;
    {
      std::unique_lock lock(mutex_);
      const auto is_news = [this] { return stopping_ || !errands_.empty(); };
      if (busy()) {
        news_.wait_for(lock, kBusyTick, is_news);
      } else if (retiring_) {
        news_.wait_for(lock, kRetireTick, is_news);
      } else {
        news_.wait(lock, is_news);
      }
      if (stopping_) return;
      if (!errands_.empty()) {
        errand = std::move(errands_.front());
        errands_.pop_front();
      }
    }
    run(errand);
    drive();
  }
}

bool PluginReloader::busy() const {
  return !removed_.empty() || std::ranges::any_of(libraries_, [](const auto& each) {
    return !each.second.rollouts.empty();
  });
}

void PluginReloader::run(const Errand& errand) {
  const Result<loader::FileChanges> changes = changes_of(errand);
  if (!changes) {
    if (errand.answer) errand.answer(changes.error());
    return;
  }
  Outcomes outcomes = take(*changes);
  if (errand.answer) errand.answer(std::move(outcomes));
}

Result<loader::FileChanges> PluginReloader::changes_of(const Errand& errand) const {
  if (!errand.all) return errand.changes;
  // All files there are; those with the bytes that are served make no new version.
  loader::DirectoryImage served;
  for (const auto& [file, library] : libraries_) served.emplace(file, loader::FileStamp{});
  const loader::DirectoryImage image =
      loader::look_at(settings_.directories, ".so", kMaxFiles, served);
  const auto is_meant = [&](const Library& library) {
    return errand.segment.empty() || library.classes.contains(errand.segment);
  };
  loader::FileChanges changes;
  bool found = errand.segment.empty();
  for (const auto& [file, library] : libraries_) {
    if (!is_meant(library)) continue;
    found = true;
    if (!image.contains(file)) changes.gone.push_back(file);
  }
  for (const auto& [file, stamp] : image) {
    const auto known = libraries_.find(file);
    if (known == libraries_.end() ? errand.segment.empty() : is_meant(known->second))
      changes.changed.push_back(file);
  }
  if (!found) return Error{Errc::kNotFound, "no library that is served has a class of this name"};
  return changes;
}

PluginReloader::Outcomes PluginReloader::take(const loader::FileChanges& changes) {
  Outcomes outcomes;
  // What is gone first: a file that was renamed gives its classes up before the new name claims them.
  for (const auto& file : changes.gone) {
    gone(file);
    outcomes.push_back(
        {.file = file, .what = Outcome::What::kRemoved, .version = {}, .reason = {}});
  }
  for (const auto& file : changes.changed) outcomes.push_back(changed(file));
  return outcomes;
}

// ---- a file has changed -----------------------------------------------------------------------------------

PluginReloader::Outcome PluginReloader::changed(const std::filesystem::path& file) {
  loader::VersionReport report = loader_.load_version(file);
  if (report.plugin && libraries_.contains(file)) refuse_what_may_not_run(report);
  if (report.refusal) refusals_.add();
  {
    const std::scoped_lock lock(mutex_);
    refused_.erase(file);
    if (report.refusal) refused_[file] = *report.refusal;
  }
  Outcome outcome;
  outcome.file = file;
  if (!report.plugin) {
    outcome.what = report.refusal ? Outcome::What::kRefused : Outcome::What::kUnchanged;
    if (report.refusal) outcome.reason = report.refusal->reason;
    return outcome;
  }
  outcome.what = Outcome::What::kNewVersion;
  outcome.version = report.plugin->version;
  outcome.generation = report.plugin->generation;
  Library& library = libraries_[file];
  for (const auto& rollout : library.rollouts) rollout->hurry();
  library.rollouts.clear();
  library.classes_before.clear();
  removed_.erase(file);
  begin(file, library, *report.plugin);
  return outcome;
}

// Agents that run must not move to a version that may not: the one before goes on.
void PluginReloader::refuse_what_may_not_run(loader::VersionReport& report) {
  std::string why;
  for (const auto& agent_class : report.plugin->classes) {
    if (why.empty()) why = settings_.describe(agent_class).refusal;
  }
  if (why.empty()) return;
  loader::Refusal refusal{.file = report.plugin->file, .rule = "R2", .reason = why};
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
                           const loader::LoadedPlugin& plugin) {
  library.generation_before = std::exchange(library.generation, plugin.generation);
  library.classes_before = std::exchange(library.classes, {});
  std::map<std::string, Served> left_out = library.classes_before;
  for (const auto& agent_class : plugin.classes) {
    const auto next = std::make_shared<const runtime::ServedClass>(settings_.describe(agent_class));
    left_out.erase(next->segment);
    library.classes[next->segment] = next;
    const auto old = library.classes_before.find(next->segment);
    library.rollouts.push_back(std::make_unique<runtime::ClassRollout>(
        runtime_, old == library.classes_before.end() ? nullptr : old->second, next,
        settings_.rollout, clock_));
    logger_.write(LogLevel::kInfo, "reload.begun",
                  {{"class", agent_class->name()},
                   {"version", agent_class->version()},
                   {"file", file.native()},
                   {"generation", plugin.generation},
                   {"trying", library.rollouts.back()->tried()}});
  }
  if (!left_out.empty()) remove(file, std::move(left_out));
}

// ---- a file is gone ---------------------------------------------------------------------------------------

void PluginReloader::gone(const std::filesystem::path& file) {
  {
    const std::scoped_lock lock(mutex_);
    refused_.erase(file);
  }
  const auto found = libraries_.find(file);
  if (found == libraries_.end()) return;
  loader_.forget_file(file);
  std::map<std::string, Served> classes = std::move(found->second.classes);
  libraries_.erase(found);
  remove(file, std::move(classes));
}

void PluginReloader::remove(const std::filesystem::path& file,
                            std::map<std::string, Served> classes) {
  Removed& removed = removed_[file];
  removed.give_up_at = clock_.steady_now() + settings_.removal_grace;
  for (const auto& [segment, served] : classes) {
    runtime_.classes().remove(segment);
    runtime_.leave_version(served->agent_class, runtime::EvictReason::kPluginRemoved, false);
    removed.segments.push_back(segment);
    logger_.write(LogLevel::kWarn, "reload.removed",
                  {{"class", served->agent_class->name()},
                   {"file", file.native()},
                   {"advice", "its agents keep their data; put the library back to serve them"}});
  }
  retiring_ = true;
}

// ---- what is under way ------------------------------------------------------------------------------------

void PluginReloader::drive() {
  for (auto& [file, library] : libraries_) drive(file, library);
  const SteadyTime now = clock_.steady_now();
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
  if (!retiring_ || busy()) return;
  loader_.retire_unused();
  retiring_ = std::ranges::any_of(loader_.generations(), [](const loader::GenerationInfo& each) {
    using State = loader::GenerationInfo::State;
    return each.state == State::kDraining || each.state == State::kRetired;
  });
}

void PluginReloader::drive(const std::filesystem::path& file, Library& library) {
  if (library.rollouts.empty()) return;
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
  library.rollouts.clear();
  library.classes_before.clear();
  retiring_ = true;
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
  library.rollouts.clear();
  library.generation = library.generation_before;
  std::map<std::string, Served> added =
      std::exchange(library.classes, std::exchange(library.classes_before, {}));
  std::erase_if(library.classes, [&](const auto& each) {
    const auto& [segment, served] = each;
    added.erase(segment);
    if (const Served now = runtime_.classes().find(segment))
      return now != served;          // left out by the version, and another library has it by now
    runtime_.classes().put(served);  // the version had left it out
    runtime_.class_is_back(segment);
    return false;
  });
  if (!added.empty()) remove(file, std::move(added));  // nothing else serves these
  retiring_ = true;
}

}  // namespace hearth::app
