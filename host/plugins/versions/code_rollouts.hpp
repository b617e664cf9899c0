#pragma once
// Replaces, adds and removes libraries while their agents live.

#include "base/clock.hpp"
#include "plugins/versions/errands.hpp"
#include "plugins/versions/plugin_loader.hpp"
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
#include <set>
#include <string>
#include <vector>

namespace hearth::plugins {

// A rollout for each new version of a library, with all of its classes.
//
// Promises
//  P1 Told       Each step is logged (reload.begun, reload.done, reload.taken_back, reload.removed,
//                what the loader logs), and refused files are in RefusedFiles.
//  P2 Way back   The ledger counts a version as proven after its probation, or once it is judged
//                if it has a newer schema.
//  P3 Reason     RefusedFiles has the reason for which a version was taken back, as long as the
//                file holds that version.
//
// Threads    One.
// Lifetime   Everything it is given outlives it.
class CodeRollouts {
 public:
  // `removal_grace`: how long clients of a removed library wait for it to come back.
  CodeRollouts(const RolloutParts& parts, PluginLoader& loader, SettingsRollouts& settings,
               std::chrono::milliseconds removal_grace, Metrics& metrics);
  CodeRollouts(const CodeRollouts&) = delete;
  CodeRollouts& operator=(const CodeRollouts&) = delete;

  // Takes over what the loader loaded at the start and the runtime serves already.
  void adopt(const LoadReport& report);

  // Loads the file. If it holds a new version, begins its rollout.
  ReloadOutcome changed(const std::filesystem::path& file);
  void gone(const std::filesystem::path& file);
  // An administrator does not want the version that comes in or is in its probation: the version
  // before the one of this class's library goes on. Its content is refused until it is forgiven.
  //   Failure   kNotFound: no library serves the class.
  //             kConflict: there is no version to go back to.
  [[nodiscard]] Result<ReloadOutcomes> take_back(const std::string& segment);
  // Serves a class that was held back, with the code that it has. No agent of it is in memory.
  void release(const std::string& segment);
  // Each library serves the classes that class files give its code now. A class with other code
  // moves at once, without a trial, and with all settings of its file. A class whose code no
  // library has is removed as with its library. A library whose version comes in waits until that
  // is in or taken back.
  void follow_class_files();
  // Does the next step of each rollout, probation and removal.
  void drive();
  // Unloads versions that no agent has, if nothing is in progress.
  void unload_unused();

  // Whether news of agents may allow the next step of a rollout, of code or settings, or an unload.
  [[nodiscard]] bool expects_news() const;
  // Of code and settings.
  [[nodiscard]] std::optional<SteadyTime> next_deadline() const;

 private:
  // The outcome for a file that holds the version that is served or comes in.
  [[nodiscard]] ReloadOutcome unchanged(const std::filesystem::path& file) const;
  void refuse_what_may_not_run(VersionReport& report);
  // Replaces what serves the file or comes in. Returns a note for the caller of reload().
  std::string bring_in(const LoadedPlugin& plugin);
  std::string begin(const std::filesystem::path& file, ServedLibrary& library,
                    const LoadedPlugin& plugin);
  // Ends the rollout in progress: its agents move at once, and are not judged. Keep the result
  // until another version serves the classes: then agents that could not start meet that version.
  [[nodiscard]] std::unique_ptr<Rollout> overtake(const std::filesystem::path& file,
                                                  ServedLibrary& library);
  void expel_earlier(const std::filesystem::path& file);
  void remove(const std::filesystem::path& file, const ClassVersions& classes);
  // ---- the steps of follow_class_files() ----
  [[nodiscard]] bool is_of_another(const std::string& segment,
                                   const std::filesystem::path& file) const;
  // Moves classes that are not wanted from the library to `leaving`.
  void give_up_others(const std::filesystem::path& file, ServedLibrary& library,
                      const PluginLoader::Classes& wanted, ClassVersions& leaving);
  // The agents of its version in `leaving`, if it is there, move.
  void serve_if_new(const std::filesystem::path& file,
                    const std::shared_ptr<const runtime::AgentClass>& agent_class,
                    ClassVersions& leaving);
  // Rollouts are in progress, or clients wait for a library that was removed.
  [[nodiscard]] bool busy() const;
  void drive(const std::filesystem::path& file, ServedLibrary& library);
  void finish(const std::filesystem::path& file, ServedLibrary& library);

  // ---- the way back: while the process runs, and after a crash ----
  void adopt_trial(const LoadedPlugin& plugin, const std::vector<Refusal>& refusals);
  void take_back(const std::filesystem::path& file, ServedLibrary& library);
  // Serves the version before again. Returns the classes that only the failed version had.
  [[nodiscard]] ClassVersions restore_before(ServedLibrary& library, const Rollout& failed);
  // All live agents have the new version. From the next look on, the agents that tried it and the
  // first that wake judge it.
  void judge_by_first_wakes(ServedLibrary& library);
  // The file's version has failed: serves the kept version before, if it can be loaded.
  void go_back(const std::filesystem::path& file, ServedLibrary& library,
               const std::string& reason);
  void begin_probation(ServedLibrary& library, std::set<std::string> untried = {},
                       bool has_newer_schema = false);
  // Logs it and counts it.
  void tell_taken_back(const std::filesystem::path& file, ServedLibrary& library,
                       const std::string& hash, const std::string& reason);
  void count_taken_back(ServedLibrary& library);
  void refuse(Refusal refusal);
  void refuse_taken_back(const std::filesystem::path& file, const std::string& hash);

  const RolloutParts parts_;
  PluginLoader& loader_;
  SettingsRollouts& settings_;
  Counter& reloads_;
  Counter& refusals_;
  Counter& rollbacks_;
  RemovedClasses removed_;
  bool retiring_ = false;  // there may be a version to unload
};

}  // namespace hearth::plugins
