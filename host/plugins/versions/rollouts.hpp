#pragma once
// Brings new code and new settings to agents while they live, and takes back what they fail on.

#include "base/clock.hpp"
#include "base/logger.hpp"
#include "plugins/versions/class_configuration.hpp"
#include "plugins/versions/errands.hpp"
#include "plugins/versions/plugin_loader.hpp"
#include "plugins/versions/removed_classes.hpp"
#include "plugins/versions/rollout.hpp"
#include "plugins/versions/served_libraries.hpp"
#include "runtime/runtime.hpp"
#include "telemetry/metrics.hpp"

#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::plugins {

// Lifetime  All parts outlive the rollouts.
struct RolloutParts {
  ServedLibraries& libraries;
  ClassConfiguration& configuration;
  // The libraries that are there and not served as they are, with the last refusal of each.
  std::map<std::filesystem::path, Refusal>& refused;
  RemovedClasses& removed;
  Errands& errands;  // stirred when drive() has something to do
  PluginLoader& loader;
  runtime::Runtime& runtime;
  const Clock& clock;
  Logger& logger;
  runtime::RolloutSettings rules;
  // How long new code or settings must hold until they are proven.
  std::chrono::milliseconds probation;
};

// A rollout for each new version of a library, with all of its classes, and for each class whose
// settings have changed. While a library's code moves, the settings of its classes wait.
//
// Promises
//  P1 Told       Each step is logged (reload.begun, reload.done, reload.taken_back, reload.removed,
//                config.changed, config.done, config.put_off, config.taken_back, what the loader
//                logs), and refused libraries are in `refused`.
//  P2 Way back   What replaces something else is on trial in the ledger before any agent has it,
//                and is proven after its probation, or with a newer schema once it is judged.
//  P3 Reason     `refused` has the reason for which a version was taken back, as long as the file
//                holds that version.
//
// Threads    One.
class Rollouts {
 public:
  Rollouts(const RolloutParts& parts, Metrics& metrics);
  Rollouts(const Rollouts&) = delete;
  Rollouts& operator=(const Rollouts&) = delete;

  // Takes over what the loader loaded at the start and the runtime serves already, and the settings
  // that the start found on trial or taken back.
  void adopt(const LoadReport& report);
  // The next rollouts do not belong to the ones before. Rollouts that begin together wait once for
  // shards that some agent's code holds up: with the first one that some shard does not answer.
  void renew_patience() { silence_.clear(); }

  // Loads the file. If it holds a new version, begins its rollout.
  ReloadOutcome changed(const std::filesystem::path& file);
  void gone(const std::filesystem::path& file);
  // An administrator does not want the version that comes in or is in its probation: the version
  // before the one of this class's library goes on. Its content is refused until it is forgiven.
  //   Failure   kNotFound: no library serves the class.
  //             kConflict: there is no version to go back to.
  [[nodiscard]] Result<ReloadOutcomes> take_back(const std::string& segment);
  // The class gets other code: a rollout of its settings ends at once.
  void hurry_settings(const std::filesystem::path& file, ServedLibrary& library,
                      const std::string& segment);
  // Begins a rollout for each class that is not served with the settings that hold for it.
  void begin_settings(ReloadOutcomes& outcomes);
  // Does the next step of each rollout, probation and removal. Unloads versions that no agent has,
  // if nothing is in progress.
  void drive();

  // Whether news of agents may allow the next step of a rollout, or an unload.
  [[nodiscard]] bool expects_news() const;
  [[nodiscard]] std::optional<SteadyTime> next_deadline() const;

 private:
  // ---- code or settings ----
  // From now on `next` serves its class. The ledger keeps the settings that it replaces, if they
  // differ.
  const runtime::ClassRollout& begin(ServedLibrary& library, Rollout& rollout,
                                     const ClassVersion& next);
  // A sentence that names the shards that do not answer a rollout that has just begun; empty: all
  // answer. Logs the first one (reload.shard_silent).
  [[nodiscard]] std::string silence_of(const runtime::ClassRollout& rollout);

  // ---- code ----
  // Replaces what serves the file or comes in. Returns a note for the caller of reload().
  std::string bring_in(const LoadedPlugin& plugin);
  std::string begin(const std::filesystem::path& file, ServedLibrary& library,
                    const LoadedPlugin& plugin);
  // Ends the rollouts in progress, of its settings and its code.
  [[nodiscard]] std::unique_ptr<Rollout> overtake(const std::filesystem::path& file,
                                                  ServedLibrary& library);
  void remove(const std::filesystem::path& file, const ClassVersions& classes);
  void drive_code(const std::filesystem::path& file, ServedLibrary& library);
  // All live agents have the new version: its probation begins.
  void finish(const std::filesystem::path& file, ServedLibrary& library);
  void take_back(const std::filesystem::path& file, ServedLibrary& library);
  // The file's version has failed: serves the kept version before, if it can be loaded.
  void go_back(const std::filesystem::path& file, ServedLibrary& library,
               const std::string& reason);
  // Logs it and counts it. `version`: its generation or its hash.
  void tell_taken_back(const std::filesystem::path& file, ServedLibrary& library,
                       const LogField& version, const std::string& reason, std::string_view advice);

  // ---- settings ----
  void begin_settings_of(ServedLibrary& library, const ClassVersion& before,
                         const std::vector<std::string>& keys, ReloadOutcomes& outcomes);
  // A version of the library comes in. Settings that agents still try are rolled back, and are
  // tried again together with the version.
  void put_off_settings(const std::filesystem::path& file, ServedLibrary& library);
  void drive_settings(const std::filesystem::path& file, ServedLibrary& library, Coming& coming,
                      const ClassVersion& version);
  void take_settings_back(const std::filesystem::path& file, ServedLibrary& library,
                          const Rollout& failed);

  const RolloutParts parts_;
  Counter& reloads_;
  Counter& refusals_;
  Counter& rollbacks_;
  Counter& settings_changes_;
  Counter& settings_rollbacks_;
  bool retiring_ = false;  // there may be a version to unload
  std::string silence_;    // names the shards that have not replied; empty: all have
};

}  // namespace hearth::plugins
