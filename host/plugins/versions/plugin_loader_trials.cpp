// Versions on trial: what a process records for the next one, and how the next one uses it.
#include "plugins/versions/plugin_loader.hpp"

#include <utility>

namespace hearth::plugins {
namespace {

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

}  // namespace

void PluginLoader::noted(const Result<void>& outcome) {
  if (outcome) return;
  services_.logger.write(LogLevel::kWarn, "plugin.trial_not_noted",
                         {{"reason", outcome.error().message},
                          {"advice",
                           "if a new version ends the server, the version before it is not served "
                           "after the restart"}});
}

void PluginLoader::keep(const Loaded& served, const std::string& reason) {
  noted(ledger_.keep(served.file, {.sha256 = served.sha256, .copy = served.copy.path()}, reason));
}

VersionReport PluginLoader::load_first(const std::filesystem::path& file) {
  VersionReport report;
  Candidate found{.file = file, .bytes = {}, .sha256 = {}};
  auto candidate = read(file);
  Checked<LoadedPlugin> loaded = candidate ? try_content(*candidate, nullptr) : candidate.error();
  if (loaded) {
    tell(*loaded);
    report.plugin = *std::move(loaded);
    return report;
  }
  if (candidate) found.sha256 = candidate->sha256;
  report.refusal = refuse(file, loaded.error(), found.sha256);
  if (!ledger_.find(file)) return report;
  report.plugin = load_before(found);
  if (report.plugin) tell(*report.plugin);
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
  if (loaded) loaded->on_trial = place && place->on_trial == sha256;
  const std::string goes_on = place && beside.empty() ? place->way_back().hash : beside;
  if (!loaded && begun && !goes_on.empty())
    noted(ledger_.lose(file, goes_on, not_served(candidate, loaded.error())));
  return loaded;
}

void PluginLoader::tell_no_way_back(const std::filesystem::path& file, const std::string& reason) {
  services_.logger.write(
      LogLevel::kError, "plugin.no_version_before",
      {{"file", file.native()},
       {"reason", reason},
       {"advice", "the version before it was kept and cannot be served: replace the file"}});
}

std::optional<LoadedPlugin> PluginLoader::load_before(const Candidate& instead_of) {
  const std::filesystem::path& file = instead_of.file;
  const auto before = ledger_.go_back(file, services_.clock, options_.trusted_user);
  if (!before) {
    tell_no_way_back(file, before.error().message);
    return std::nullopt;
  }
  auto loaded = load_candidate(*before);
  if (!loaded) {
    tell_no_way_back(file, loaded.error().reason);
    return std::nullopt;
  }
  const auto place = ledger_.find(file);
  loaded->on_trial = place && place->on_trial == loaded->sha256;
  loaded->instead_of = instead_of.sha256;
  return *std::move(loaded);
}

VersionReport PluginLoader::go_back(const std::filesystem::path& file, const std::string& reason) {
  VersionReport report;
  thread_.run([&] {
    const Loaded* const served = current_of(file);
    const auto place = ledger_.find(file);
    if (served == nullptr || !place || place->on_trial != served->sha256) return;
    const Candidate wanting{.file = file, .bytes = {}, .sha256 = served->sha256};
    const Finding why = failed_before(reason);
    // Not to itself: it may be the content that was superseded before, and has run again.
    const bool is_superseded = place->superseded.hash == wanting.sha256;
    noted(ledger_.lose(file, (is_superseded ? place->proven : place->way_back()).hash,
                       {.hash = wanting.sha256, .reason = why.reason, .may_retry = false}));
    report.plugin = load_before(wanting);
    if (report.plugin) tell(*report.plugin);
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

}  // namespace hearth::plugins
