#pragma once
// Libraries are replaced, come and go while their agents live.

#include "base/clock.hpp"
#include "plugins/versions/errands.hpp"
#include "plugins/versions/plugin_loader.hpp"
#include "plugins/versions/probation.hpp"
#include "plugins/versions/removed_classes.hpp"
#include "plugins/versions/rollout.hpp"
#include "plugins/versions/rollout_parts.hpp"
#include "plugins/versions/served_libraries.hpp"
#include "plugins/versions/settings_rollouts.hpp"
#include "telemetry/metrics.hpp"

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace hearth::plugins {

// A rollout for each new version of a library, with all of its classes.
//
// Promises
//  P1 Told       reload.begun, reload.done, reload.taken_back, reload.removed in the log, and what
//                the loader tells; refused files on the board.
//  P2 Way back   A version is proven in the ledger when it has held for its probation, or when the
//                first agents that woke on it have judged it and have migrated. What it was taken
//                back for is told as long as the file holds it.
//
// Threads    One.
// Lifetime   Everything it is given outlives it.
class CodeRollouts {
 public:
  // `removal_grace`: how long clients of a library that is gone wait for it.
  CodeRollouts(const RolloutParts& parts, PluginLoader& loader, SettingsRollouts& settings,
               std::chrono::milliseconds removal_grace, Metrics& metrics);
  CodeRollouts(const CodeRollouts&) = delete;
  CodeRollouts& operator=(const CodeRollouts&) = delete;

  // What the loader has loaded at the start and the runtime serves already.
  void adopt(const LoadReport& report);

  // A file that is there may hold something else now.
  ReloadOutcome changed(const std::filesystem::path& file);
  void gone(const std::filesystem::path& file);
  // A class that was held back is served by the code that it has; no agent of it is in memory.
  void release(const std::string& segment);
  // What is under way.
  void drive();
  // Unloads versions that no agent has any more. While nothing is on its way, of settings neither.
  void unload_unused();

  // Some library is on its way, or its clients wait for it.
  [[nodiscard]] bool busy() const;
  // Whether what agents do may bring something further.
  [[nodiscard]] bool expects_news() const;
  [[nodiscard]] std::optional<SteadyTime> next_deadline() const;
  // The names of classes that are on their way.
  void add_moving(std::vector<std::string>& names) const;

 private:
  // A file that holds what is served, or what is on its way to be.
  [[nodiscard]] ReloadOutcome unchanged(const std::filesystem::path& file) const;
  void refuse_what_may_not_run(VersionReport& report);
  // In the place of whatever serves the file, or is on its way. Gives a note for who asked.
  std::string bring_in(const LoadedPlugin& plugin);
  std::string begin(const std::filesystem::path& file, ServedLibrary& library,
                    const LoadedPlugin& plugin);
  // What is on its way gets there at once, and nobody looks how. The result goes when something
  // else serves the classes: agents that could not start on what was on trial meet that.
  [[nodiscard]] std::unique_ptr<Rollout> overtake(const std::filesystem::path& file,
                                                  ServedLibrary& library);
  void expel_earlier(const std::filesystem::path& file);
  void remove(const std::filesystem::path& file, const ClassVersions& classes);
  void drive(const std::filesystem::path& file, ServedLibrary& library);
  void finish(const std::filesystem::path& file, ServedLibrary& library);

  // ---- the way back: while the process runs, and after it has ended it ----
  void adopt_trial(const LoadedPlugin& plugin, const std::vector<Refusal>& refusals);
  void take_back(const std::filesystem::path& file, ServedLibrary& library);
  // Serves the version before again. Gives the classes that only the one taken back had.
  [[nodiscard]] ClassVersions restore_before(ServedLibrary& library, const Rollout& failed);
  // What came in is served by all agents that live: from the next look on the first that wake judge
  // it, and those that tried it.
  void watch_first_wakes(const std::filesystem::path& file, ServedLibrary& library);
  // Whether it is on its way back.
  bool goes_back(const std::filesystem::path& file, ServedLibrary& library, bool is_over);
  void begin_probation(const std::filesystem::path& file);
  void end_probations();
  // Logs and counts it.
  void tell_taken_back(const std::filesystem::path& file, ServedLibrary& library,
                       const std::string& hash, const std::string& reason);
  void count_taken_back(ServedLibrary& library);
  // On the board from now on.
  void refuse_taken_back(const std::filesystem::path& file, const std::string& hash);

  const RolloutParts parts_;
  PluginLoader& loader_;
  SettingsRollouts& settings_;
  Counter& reloads_;
  Counter& refusals_;
  Counter& rollbacks_;
  RemovedClasses removed_;
  Probation<std::filesystem::path> probation_;
  bool retiring_ = false;  // a version may be left to unload
};

}  // namespace hearth::plugins
