#include "plugins/versions/plugin_loader.hpp"

#include "base/assert.hpp"
#include "base/escape.hpp"
#include "plugins/admission/required_check.hpp"

#include <algorithm>
#include <system_error>
#include <thread>
#include <utility>

namespace hearth::plugins {
namespace {

// The libraries in a directory in the order of their names; an error if it cannot be listed.
Result<std::vector<std::filesystem::path>> list_libraries(const std::filesystem::path& directory) {
  std::vector<std::filesystem::path> files;
  std::error_code failure;
  std::filesystem::directory_iterator entry(directory, failure);
  while (!failure && entry != std::filesystem::directory_iterator()) {
    const std::filesystem::path& path = entry->path();
    const bool hidden = path.filename().native().starts_with('.');
    if (!hidden && path.extension() == ".so") files.push_back(path);
    if (files.size() > PluginLoader::kMaxFiles) {
      return Error{Errc::kLimitExceeded, show_name(directory.native()) + " holds more than " +
                                             std::to_string(PluginLoader::kMaxFiles) +
                                             " libraries"};
    }
    entry.increment(failure);
  }
  if (failure) {
    return Error{Errc::kForbidden,
                 show_name(directory.native()) + " cannot be listed: " + failure.message()};
  }
  std::ranges::sort(files);
  return files;
}

std::string_view reason_of(Retirement outcome) {
  switch (outcome) {
    case Retirement::kUnloaded: return "";
    case Retirement::kStillMapped: return "the dynamic loader keeps it mapped";
    case Retirement::kInUse: return "an agent of it still lives";
    case Retirement::kBusy: return "its deinit() says that something still runs";
  }
  return "";
}

// Rule R1 refuses content that failed when it was tried. Content that another rule refuses has not
// run: at the next start the rule may accept it.
Trial::NotServed not_served(const Candidate& candidate, const Finding& why) {
  return {.hash = candidate.sha256, .reason = why.reason, .may_retry = why.rule != "R1"};
}

// The next process must not serve a version that crashed this one: so a version that cannot be
// recorded does not run. Exceptions: a file name that is not UTF-8, and too many libraries on
// trial.
bool must_not_run(const Error& not_noted) {
  return not_noted.code != Errc::kInvalidArgument && not_noted.code != Errc::kLimitExceeded;
}

Finding no_way_back(const Error& not_noted) {
  return finding("S2",
                 "the version before it goes on, since the way back to that cannot be "
                 "written down: " +
                     not_noted.message + ". Mend that, and run `hearth reload`");
}

Trial::NotServed failed_before(const std::string& sha256, const std::string& reason) {
  return {.hash = sha256, .reason = "its agents failed when it was tried before: " + reason};
}

}  // namespace

std::string Refusal::text() const {
  std::string text;
  append_escaped(text, file.native(), EscapeStyle::kHuman);
  return text + " is refused by rule " + rule + ": " + reason;
}

PluginLoader::PluginLoader(const extensions::AbiServices& services, VersionLedger& ledger,
                           LoaderOptions options)
    : services_(services),
      ledger_(ledger),
      options_(std::move(options)),
      claims_(options_.aliased) {
  if (!options_.pause) {
    options_.pause = [](std::chrono::milliseconds time) { std::this_thread::sleep_for(time); };
  }
}

PluginLoader::~PluginLoader() {
  unload_all();
  // A generation that stays leaves its library mapped when it is destroyed.
}

Result<LoadReport> PluginLoader::load_directories(
    const std::vector<std::filesystem::path>& directories) {
  Result<LoadReport> outcome = LoadReport{};
  thread_.run([&] {
    if (!staging_) {
      auto area = StagingArea::open(options_.staging_directory);
      if (!area) {
        outcome = area.error();
        return;
      }
      staging_ = *std::move(area);
      first_ = ProcessSettings::take();
    }
    for (const auto& directory : directories) load_directory(directory, *outcome);
  });
  return outcome;
}

void PluginLoader::load_directory(const std::filesystem::path& directory, LoadReport& report) {
  Logger& logger = services_.logger;
  const auto give_up = [&](const Error& error) {
    logger.write(LogLevel::kError, "plugin.directory",
                 {{"directory", directory.native()}, {"reason", error.message}});
    report.faults.push_back({.directory = directory, .code = error.code, .reason = error.message});
  };
  if (const auto checked = check_directory(directory, options_.trusted_user); !checked) {
    return give_up(checked.error());
  }
  std::error_code failure;
  const auto real = std::filesystem::canonical(directory, failure);
  if (std::ranges::find(visited_, real) != visited_.end()) return;  // named twice
  const auto files = list_libraries(directory);
  if (!files) return give_up(files.error());
  visited_.push_back(real);

  for (const std::filesystem::path& file : *files) {
    VersionReport found = load_first(file);
    if (found.refusal) report.refusals.push_back(*std::move(found.refusal));
    if (found.plugin) report.plugins.push_back(*std::move(found.plugin));
  }
}

void PluginLoader::tell(const LoadedPlugin& plugin) {
  for (const Finding& warning : plugin.warnings) {
    services_.logger.write(
        LogLevel::kWarn, "plugin.warning",
        {{"file", plugin.file.native()}, {"rule", warning.rule}, {"reason", warning.reason}});
  }
  services_.logger.record(LogLevel::kInfo, "plugin.loaded",
                          {{"file", plugin.file.native()},
                           {"plugin", plugin.plugin},
                           {"version", plugin.version},
                           {"classes", plugin.classes.size()},
                           {"sha256", plugin.sha256},
                           {"generation", plugin.generation}});
}

Refusal PluginLoader::refuse(const std::filesystem::path& file, const Finding& why,
                             const std::string& sha256) {
  services_.logger.record(LogLevel::kError, "plugin.refused",
                          {{"file", file.native()}, {"rule", why.rule}, {"reason", why.reason}});
  return Refusal{.file = file, .rule = why.rule, .reason = why.reason, .sha256 = sha256};
}

Checked<Candidate> PluginLoader::read(const std::filesystem::path& file) {
  const ReadingPolicy policy{
      .user = options_.trusted_user, .settle_time = options_.settle_time, .pause = options_.pause};
  return read_candidate(file, services_.clock, policy);
}

Checked<LoadedPlugin> PluginLoader::load_candidate(const Candidate& candidate) {
  Inspection inspection = inspect_library(candidate.bytes);
  if (const Finding* refusal = inspection.refusal()) return *refusal;
  HEARTH_ASSERT(inspection.note.has_value(), "what nothing refuses has a note");
  PluginNote note = *std::move(inspection.note);
  if (auto taken = claims_.conflict(note.manifest.classes, candidate.file))
    return *std::move(taken);
  if (auto refusal = ledger_.refusal(candidate.file, candidate.sha256))
    return finding(refusal->rule, std::move(refusal->reason));
  const bool will_stay =
      std::ranges::find(inspection.findings, "E9", &Finding::rule) != inspection.findings.end();
  if (auto too_many = too_many_pinned(candidate.file, will_stay)) return *std::move(too_many);

  if (!options_.checked_directory.empty()) {
    if (auto unchecked = require_check_record(options_.checked_directory, candidate.sha256,
                                              options_.trusted_user))
      return *std::move(unchecked);
  }

  HEARTH_ASSERT(staging_.has_value(), "the staging area is opened before any file is looked at");
  auto copy = staging_->stage(note.manifest.plugin, candidate.sha256, candidate.bytes);
  if (!copy) return finding("S1", "no private copy of it could be made: " + copy.error().message);
  if (copy->descriptor() >= 0) {
    services_.logger.write(LogLevel::kWarn, "server.disk_full",
                           {{"what", "the private copy of a library"},
                            {"file", candidate.file.native()},
                            {"next", "it is kept in memory until the library is replaced"}});
  }
  auto generation = try_and_load(candidate, *copy, note);
  if (!generation) return generation.error();

  claims_.claim(note.manifest.classes, candidate.file);
  LoadedPlugin plugin{.file = candidate.file,
                      .plugin = note.manifest.plugin,
                      .version = note.manifest.version,
                      .sha256 = candidate.sha256,
                      .generation = copy->generation(),
                      .warnings = std::move(inspection.findings),
                      .classes = (*generation)->make_classes(options_.names)};
  if (Loaded* const before = current_of(candidate.file)) before->current = false;
  loaded_.push_back({.file = candidate.file,
                     .sha256 = candidate.sha256,
                     .copy = *std::move(copy),
                     .generation = *std::move(generation),
                     .will_stay = will_stay,
                     .pinned_because = {}});
  plugin.on_trial = is_on_trial(candidate.file, candidate.sha256);
  tell(plugin);
  return plugin;
}

// Refuses only a version that would replace a served one, which goes on. A file without a served
// version is never refused here.
std::optional<Finding> PluginLoader::too_many_pinned(const std::filesystem::path& file,
                                                     bool will_stay) {
  const Loaded* const served = current_of(file);
  if (served == nullptr || pinned_ < options_.max_pinned) return std::nullopt;
  const bool has_stayed = std::ranges::any_of(loaded_, [&file](const Loaded& each) {
    return each.file == file && !each.pinned_because.empty();
  });
  if (!will_stay && !served->will_stay && !has_stayed) return std::nullopt;
  return finding("R3", "its versions cannot be unloaded, and " + std::to_string(pinned_.load()) +
                           " that should have gone stay in memory already (reload.max_pinned is " +
                           std::to_string(options_.max_pinned) +
                           "): restart the server, which frees them and loads this one");
}

PluginLoader::Loaded* PluginLoader::current_of(const std::filesystem::path& file) {
  const auto found = std::ranges::find_if(
      loaded_, [&file](const Loaded& each) { return each.current && each.file == file; });
  return found == loaded_.end() ? nullptr : &*found;
}

// ---- trials: what a process records for the next one, and how the next one uses it --------------

void PluginLoader::noted(const Result<void>& outcome) {
  if (outcome) return;
  services_.logger.write(LogLevel::kWarn, "plugin.trial_not_noted",
                         {{"reason", outcome.error().message},
                          {"advice",
                           "if a new version ends the server, the version before it is not served "
                           "after the restart"}});
}

bool PluginLoader::is_on_trial(const std::filesystem::path& file, const std::string& sha256) const {
  const auto place = ledger_.find(file);
  return place && place->on_trial == sha256;
}

void PluginLoader::keep(const Loaded& served, const std::string& reason) {
  noted(ledger_.keep(served.file, {.sha256 = served.sha256, .copy = served.copy.path()}, reason));
}

VersionReport PluginLoader::load_first(const std::filesystem::path& file) {
  VersionReport report;
  const auto candidate = read(file);
  Checked<LoadedPlugin> loaded = candidate ? try_content(*candidate, nullptr) : candidate.error();
  if (loaded) {
    report.plugin = *std::move(loaded);
    return report;
  }
  const std::string sha256 = candidate ? candidate->sha256 : std::string();
  report.refusal = refuse(file, loaded.error(), sha256);
  if (ledger_.find(file)) report.plugin = load_before(file, sha256);
  return report;
}

Checked<LoadedPlugin> PluginLoader::try_content(const Candidate& candidate, const Loaded* served) {
  const auto& [file, bytes, sha256] = candidate;
  const std::string beside = served == nullptr ? std::string() : served->sha256;
  const auto begun =
      served == nullptr
          ? ledger_.meet(file, sha256)
          : ledger_.begin(file, sha256, {.sha256 = beside, .copy = served->copy.path()});
  if (!begun && must_not_run(begun.error())) return no_way_back(begun.error());
  noted(begun);
  auto loaded = load_candidate(candidate);  // moves what `served` refers to
  const auto place = ledger_.find(file);
  const std::string goes_on = place && beside.empty() ? place->way_back().hash : beside;
  if (!loaded && begun && !goes_on.empty())
    noted(ledger_.lose(file, goes_on, not_served(candidate, loaded.error())));
  return loaded;
}

std::optional<LoadedPlugin> PluginLoader::load_before(const std::filesystem::path& file,
                                                      const std::string& instead_of,
                                                      const std::string& sha256) {
  const auto give_up = [&](const std::string& reason) {
    services_.logger.write(
        LogLevel::kError, "plugin.no_version_before",
        {{"file", file.native()},
         {"reason", reason},
         {"advice", "the version before it was kept and cannot be served: replace the file"}});
    return std::nullopt;
  };
  const auto before = ledger_.go_back(file, services_.clock, options_.trusted_user, sha256);
  if (!before) return give_up(before.error().message);
  auto loaded = load_candidate(*before);
  if (!loaded) return give_up(loaded.error().reason);
  loaded->instead_of = instead_of;
  return *std::move(loaded);
}

// ---- later versions -----------------------------------------------------------------------------

VersionReport PluginLoader::load_version(const std::filesystem::path& file) {
  VersionReport report;
  thread_.run([&] {
    HEARTH_ASSERT(staging_.has_value(), "load_version() comes after load_directories()");
    const auto give_up = [&](const Finding& why, const std::string& sha256 = {}) {
      report.refusal = refuse(file, why, sha256);
    };
    // Other users may have got access to the directory since.
    if (const auto checked = check_directory(file.parent_path(), options_.trusted_user); !checked)
      return give_up(finding("F4", checked.error().message));
    const Loaded* const served = current_of(file);
    if (served == nullptr) {
      report = load_first(file);
      return;
    }
    const auto candidate = read(file);
    if (!candidate) {
      keep(*served, candidate.error().reason);
      return give_up(candidate.error());
    }
    if (served->sha256 == candidate->sha256) return noted(ledger_.settle(file));
    auto loaded = try_content(*candidate, served);
    if (!loaded) return give_up(loaded.error(), candidate->sha256);
    report.plugin = *std::move(loaded);
  });
  return report;
}

std::string PluginLoader::take_back(const std::filesystem::path& file, std::uint64_t generation,
                                    const std::string& reason) {
  std::string goes_on;
  thread_.run([&] {
    Loaded* before = nullptr;
    std::string taken_back;
    for (Loaded& each : loaded_) {
      if (each.file != file) continue;
      if (each.copy.generation() == generation) {
        each.current = false;
        each.taken_back = true;
        taken_back = each.sha256;
      } else if (each.copy.generation() < generation && !each.taken_back &&
                 each.pinned_because.empty()) {
        before = &each;  // the latest of them
      }
    }
    if (before != nullptr) goes_on = before->sha256;
    noted(ledger_.lose(file, goes_on, failed_before(taken_back, reason)));
    if (before == nullptr) return claims_.release(file);
    before->current = true;
    // Another file may have claimed classes that the later version lacked.
    claims_.claim(before->generation->note().manifest.classes, file);
  });
  return goes_on;
}

VersionReport PluginLoader::go_back(const std::filesystem::path& file, const std::string& reason) {
  VersionReport report;
  thread_.run([&] {
    const Loaded* const served = current_of(file);
    const auto place = ledger_.find(file);
    if (served == nullptr || !place || place->on_trial != served->sha256) return;
    const std::string failed = served->sha256;
    // Not to itself: it may be the content that was superseded before, and has run again.
    const bool is_superseded = place->superseded.hash == failed;
    const std::string before = (is_superseded ? place->proven : place->way_back()).hash;
    // First: if it cannot be loaded, the version that failed goes on, at the next start too.
    report.plugin = load_before(file, failed, before);
    if (!report.plugin) return;
    noted(ledger_.lose(file, before, failed_before(failed, reason)));
    report.plugin->on_trial = is_on_trial(file, before);
  });
  return report;
}

void PluginLoader::prove(const std::filesystem::path& file) {
  thread_.run([&] {
    const Loaded* const served = current_of(file);
    if (served == nullptr) return;
    noted(ledger_.prove(file, {.sha256 = served->sha256, .copy = served->copy.path()}));
  });
}

std::optional<PluginLoader::Classes> PluginLoader::classes_of(const std::filesystem::path& file) {
  std::optional<Classes> classes;
  thread_.run([&] {
    if (const Loaded* const served = current_of(file))
      classes = served->generation->make_classes(options_.names);
  });
  return classes;
}

void PluginLoader::forgive(const std::string& sha256) {
  noted(ledger_.allow(sha256));
}

void PluginLoader::forget_file(const std::filesystem::path& file) {
  thread_.run([&] {
    if (Loaded* const served = current_of(file)) {
      keep(*served, "the file is gone");
      served->current = false;
    }
    claims_.release(file);
  });
}

std::size_t PluginLoader::retire_unused() {
  std::size_t unloaded = 0;
  thread_.run([&] {
    unloaded = std::erase_if(loaded_, [&](Loaded& each) {
      const bool may_go =
          !each.current && each.pinned_because.empty() && !each.generation->in_use();
      return may_go && retire(each);
    });
  });
  return unloaded;
}

std::vector<GenerationInfo> PluginLoader::generations() {
  std::vector<GenerationInfo> all;
  thread_.run([&] {
    for (const Loaded& each : loaded_) {
      using State = GenerationInfo::State;
      const PluginNote& note = each.generation->note();
      State state = each.generation->in_use() ? State::kDraining : State::kRetired;
      if (each.current) state = State::kCurrent;
      if (!each.pinned_because.empty()) state = State::kPinned;
      all.push_back({.file = each.file,
                     .plugin = note.manifest.plugin,
                     .version = note.manifest.version,
                     .sha256 = each.sha256,
                     .generation = each.copy.generation(),
                     .classes = note.manifest.classes,
                     .state = state,
                     .pinned_because = each.pinned_because});
    }
  });
  return all;
}

std::string_view to_string(GenerationInfo::State state) noexcept {
  switch (state) {
    case GenerationInfo::State::kCurrent: return "current";
    case GenerationInfo::State::kDraining: return "draining";
    case GenerationInfo::State::kRetired: return "retired";
    case GenerationInfo::State::kPinned: return "pinned";
  }
  return "";
}

// ---- the end ------------------------------------------------------------------------------------

Checked<std::shared_ptr<PluginGeneration>> PluginLoader::try_and_load(const Candidate& candidate,
                                                                      const StagedFile& copy,
                                                                      PluginNote note) {
  ProbeOptions trial = options_.probe;
  trial.descriptor = copy.descriptor();
  if (auto broken = probe_library(copy.path(), trial)) {
    if (!is_untried(*broken))
      noted(ledger_.refuse(candidate.sha256, std::string(broken->rule), broken->reason));
    return *std::move(broken);
  }
  ProcessGuard guard;
  // If loading fails, this runs before the library is unmapped: the process may still refer to code
  // of the library.
  const auto restore = [&] { tell_restored(guard.restore(), candidate.file); };
  auto generation =
      PluginGeneration::load(copy.path(), candidate.file.native(), std::move(note), services_, {},
                             [&restore](const diagnosis::CodeRange& /*library*/) { restore(); },
                             {.sha256 = candidate.sha256, .number = copy.generation()});
  restore();
  if (generation) (*generation)->tell_unused(options_.news);
  return generation;
}

// The trial refuses a library that changes the process (L5). This is for one that does it only
// here.
void PluginLoader::tell_restored(const std::vector<std::string>& changed,
                                 const std::filesystem::path& file) {
  if (changed.empty()) return;
  std::string text;
  for (const std::string& each : changed) text += (text.empty() ? "" : ", ") + each;
  services_.logger.write(
      LogLevel::kWarn, "plugin.process_restored",
      {{"file", file.native()},
       {"changed", text},
       {"advice", "the library changed what belongs to the whole process; it was put back"}});
}

std::size_t PluginLoader::unload_all() {
  std::size_t unloaded = 0;
  thread_.run([&] {
    // In reverse order of loading.
    for (auto loaded = loaded_.rbegin(); loaded != loaded_.rend(); ++loaded)
      unloaded += retire(*loaded) ? 1 : 0;
    loaded_.clear();
    pinned_ = 0;
    claims_ = ClassClaims(options_.aliased);
    visited_.clear();
  });
  return unloaded;
}

bool PluginLoader::retire(Loaded& loaded) {
  HEARTH_ASSERT(first_.has_value(), "it was taken before any library was loaded");
  std::optional<ProcessGuard> guard(std::in_place);
  const Retirement outcome =
      loaded.generation->retire({}, [&](const diagnosis::CodeRange& library) {
        tell_restored(guard->restore_without(library, *first_), loaded.file);
        guard.emplace();  // for changes by the library's destructors; holds nothing of the library
      });
  tell_restored(guard->restore(), loaded.file);
  if (outcome == Retirement::kUnloaded) return true;
  const std::string_view reason = reason_of(outcome);
  loaded.pinned_because = reason;
  ++pinned_;
  services_.logger.write(LogLevel::kWarn, "plugin.pinned",
                         {{"file", loaded.file.native()}, {"reason", reason}});
  return false;
}

}  // namespace hearth::plugins
