#include "loader/plugin_loader.hpp"

#include "base/assert.hpp"
#include "base/escape.hpp"

#include <algorithm>
#include <system_error>
#include <thread>
#include <utility>

namespace hearth::loader {
namespace {

// The candidates of a directory in the order of their names; an error if it cannot be listed.
Result<std::vector<std::filesystem::path>> list_libraries(const std::filesystem::path& directory) {
  std::vector<std::filesystem::path> files;
  std::error_code failure;
  std::filesystem::directory_iterator entry(directory, failure);
  while (!failure && entry != std::filesystem::directory_iterator()) {
    const std::filesystem::path& path = entry->path();
    const bool hidden = path.filename().native().starts_with('.');
    if (!hidden && path.extension() == ".so") files.push_back(path);
    if (files.size() > PluginLoader::kMaxFiles) {
      return Error{Errc::kLimitExceeded,
                   quote_text(directory.native(), 4096) + " holds more than " +
                       std::to_string(PluginLoader::kMaxFiles) + " libraries"};
    }
    entry.increment(failure);
  }
  if (failure) {
    return Error{Errc::kForbidden,
                 quote_text(directory.native(), 4096) + " cannot be listed: " + failure.message()};
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

}  // namespace

std::string Refusal::text() const {
  std::string text;
  append_escaped(text, file.native(), EscapeStyle::kHuman);
  return text + " is refused by rule " + rule + ": " + reason;
}

PluginLoader::PluginLoader(const AbiServices& services, LoaderOptions options)
    : services_(services), options_(std::move(options)), claims_(options_.class_segment) {
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
    auto loaded = load_file(file);
    if (!loaded) {
      const Finding& why = loaded.error();
      logger.write(LogLevel::kError, "plugin.refused",
                   {{"file", file.native()}, {"rule", why.rule}, {"reason", why.reason}});
      report.refusals.push_back({.file = file, .rule = why.rule, .reason = why.reason});
      continue;
    }
    for (const Finding& warning : loaded->warnings) {
      logger.write(LogLevel::kWarn, "plugin.warning",
                   {{"file", file.native()}, {"rule", warning.rule}, {"reason", warning.reason}});
    }
    logger.write(LogLevel::kInfo, "plugin.loaded",
                 {{"file", file.native()},
                  {"plugin", loaded->plugin},
                  {"version", loaded->version},
                  {"classes", loaded->classes.size()},
                  {"sha256", loaded->sha256},
                  {"generation", loaded->generation}});
    report.plugins.push_back(*std::move(loaded));
  }
}

Checked<LoadedPlugin> PluginLoader::load_file(const std::filesystem::path& file) {
  const ReadingPolicy policy{
      .user = options_.trusted_user, .settle_time = options_.settle_time, .pause = options_.pause};
  const auto candidate = read_candidate(file, services_.clock, policy);
  if (!candidate) return candidate.error();
  Inspection inspection = inspect_library(candidate->bytes);
  if (const Finding* refusal = inspection.refusal()) return *refusal;
  HEARTH_ASSERT(inspection.note.has_value(), "what nothing refuses has a note");
  PluginNote note = *std::move(inspection.note);
  if (auto taken = claims_.conflict(note.manifest.classes)) return *std::move(taken);
  if (const auto bad = known_bad_.find(candidate->sha256); bad != known_bad_.end())
    return bad->second;

  HEARTH_ASSERT(staging_.has_value(), "the staging area is opened before any file is looked at");
  auto copy = staging_->stage(note.manifest.plugin, candidate->sha256, candidate->bytes);
  if (!copy) return finding("S1", "no private copy of it could be made: " + copy.error().message);
  auto generation = try_and_load(*candidate, *copy, note);
  if (!generation) return generation.error();

  claims_.claim(note.manifest.classes, file);
  LoadedPlugin plugin{.file = file,
                      .plugin = note.manifest.plugin,
                      .version = note.manifest.version,
                      .sha256 = candidate->sha256,
                      .generation = copy->generation(),
                      .warnings = std::move(inspection.findings),
                      .classes = (*generation)->make_classes()};
  loaded_.push_back({.file = file, .copy = *std::move(copy), .generation = *std::move(generation)});
  return plugin;
}

Checked<std::shared_ptr<PluginGeneration>> PluginLoader::try_and_load(const Candidate& candidate,
                                                                      const StagedFile& copy,
                                                                      PluginNote note) {
  if (auto broken = probe_library(copy.path(), options_.probe)) {
    known_bad_.emplace(candidate.sha256, *broken);
    return *std::move(broken);
  }
  return PluginGeneration::load(copy.path(), candidate.file.native(), std::move(note), services_);
}

UnloadReport PluginLoader::unload_all() {
  UnloadReport report;
  thread_.run([&] {
    // The last loaded goes first, as it would with any other stack of things.
    for (auto loaded = loaded_.rbegin(); loaded != loaded_.rend(); ++loaded)
      retire(*loaded, report);
    loaded_.clear();
    claims_ = ClassClaims(options_.class_segment);
    visited_.clear();
  });
  return report;
}

void PluginLoader::retire(Loaded& loaded, UnloadReport& report) {
  const Retirement outcome = loaded.generation->retire();
  if (outcome == Retirement::kUnloaded) {
    ++report.unloaded;
    return;
  }
  const std::string_view reason = reason_of(outcome);
  services_.logger.write(LogLevel::kWarn, "plugin.pinned",
                         {{"file", loaded.file.native()}, {"reason", reason}});
  report.pinned.push_back({.file = loaded.file, .reason = std::string(reason)});
}

}  // namespace hearth::loader
