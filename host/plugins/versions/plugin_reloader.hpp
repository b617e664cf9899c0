#pragma once
// Replaces libraries and the settings of classes while the server runs.

#include "base/clock.hpp"
#include "base/logger.hpp"
#include "base/mutex.hpp"
#include "config/diagnostic.hpp"
#include "plugins/versions/class_configuration.hpp"
#include "plugins/versions/directory_watcher.hpp"
#include "plugins/versions/errands.hpp"
#include "plugins/versions/plugin_loader.hpp"
#include "plugins/versions/removed_classes.hpp"
#include "plugins/versions/rollouts.hpp"
#include "plugins/versions/served_libraries.hpp"
#include "runtime/class_rollout.hpp"
#include "runtime/runtime.hpp"
#include "telemetry/metrics.hpp"

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace hearth::plugins {

// The files that say what is served: libraries, and class files.
[[nodiscard]] std::vector<WatchedDirectory> directories_of(
    const std::vector<std::filesystem::path>& plugins, const std::filesystem::path& class_files);

struct ReloadSettings {
  std::vector<WatchedDirectory> directories;  // directories_of()
  DirectoryImage known;                       // what they held when it was read
  bool watch = true;                          // false: only reload() looks
  std::chrono::milliseconds quiet_time{300};
  // How long the clients of a library that was removed wait for it to come back.
  std::chrono::milliseconds removal_grace{10'000};
  runtime::RolloutSettings rollout;
  // How long a version must run, after all agents have moved to it, until it is proven
  // (VersionLedger::prove). Then a crash does not lead back to the version before.
  std::chrono::milliseconds probation{60'000};
  // What the class files say. From now on only the reloader's thread uses it.
  ClassConfiguration* configuration = nullptr;
  ServedLibraries::Describe describe;
};

// library file   what happens to its classes
// changed        The loader checks the new version as at the start of the server. If that fails,
//                the old version goes on. Otherwise a rollout begins for each class
//                (runtime/class_rollout.hpp). If agents of one class fail, the whole library is
//                taken back, until the file or the settings of its classes change, or reload() is
//                called.
// new            They are served.
// gone           New wakes are refused (503), also after the grace. Live agents are evicted.
//                Connected clients wait for removal_grace, then they are closed (1012). All these
//                clients retry until the file is back.
//
// When a class file changes, the reloader reads all class files. If one has a mistake, nothing
// changes, and the mistake is logged (config.refused) and reported. Otherwise each class whose
// settings have changed (config.changed) gets a rollout of its own, as for new code. If its agents
// fail, the settings before go on (config.taken_back). The new ones are tried again when the file
// changes, a new version of the library is in, or reload() is called. Aliases hold at once and move
// no agent.
//
// Promises
//  P1 Two at most  At most two versions of a library have agents.
//  P2 Unmapped     A version is unloaded as soon as no agent of it is left, or pinned with a
//                  reason.
//  P3 Told         Each step is logged (see Log).
//  P4 The newest   While the reloader is busy, only the last state of each changed file counts.
//  P5 Never stuck  The reloader waits at most a second for shards that some agent's code holds up,
//                  once for all that changes together, and at most a second for P1.
//  P6 Way back     The next start does not serve a version, or settings, that crashed the server
//                  during their rollout or probation.
//
// P1: a third version ends the trial of the second one. Before it begins, agents of earlier
// versions are evicted at once: evict_grace is cut short, and `drain` does not count. Agents of a
// shard that does not answer keep their version until the shard answers (P5).
//
// P4: settings that change while a version of the library comes in follow when that version is in
// or taken back. Settings that are on trial when a version comes go on trial with that version. If
// it is taken back, they are tried again without it.
//
// P6: the loader records what is on trial; the reloader says when it is proven. If fewer agents
// live than a trial needs, the first agents that wake judge the version too, up to the number that
// a trial needs. If some have woken, but fewer than that, when the probation ends, the version is
// taken back only if none of them could start. A version with newer schemas is proven once agents
// of those classes have judged it: the versions before could not serve agents that have migrated.
// After a start, or a time without the library, the schemas of the version before are not known:
// then each class with a schema version counts. If a start serves another version than the file
// holds, that is logged as taken back, and the file's version is tried again like any that was
// taken back.
//
// Log        reload.begun, reload.done, reload.taken_back, reload.removed, config.refused,
//            config.changed, config.done, config.taken_back, and what the loader logs.
// Threads    The constructor starts a thread. It sleeps until something happens: an order, a change
//            of files, news of agents (runtime/version_news.hpp), or a deadline. Call the functions
//            from any thread.
// Lifetime   Everything it is given outlives it. Destroy it before the runtime stops.
class PluginReloader {
 public:
  // `report`: what the loader loaded at the start. The runtime serves it already.
  PluginReloader(const LoadReport& report, PluginLoader& loader, runtime::Runtime& runtime,
                 const Clock& clock, Logger& logger, Metrics& metrics, ReloadSettings settings);
  ~PluginReloader();
  PluginReloader(const PluginReloader&) = delete;
  PluginReloader& operator=(const PluginReloader&) = delete;

  using Outcome = ReloadOutcome;
  using Outcomes = ReloadOutcomes;
  // Looks at the directories now, even if the watcher noticed nothing. `answer`, which may be
  // absent, is called once, on the reloader's thread, when each file has been read and tried. With
  // a segment it looks only at the file that serves that class, and at what class files say of the
  // class.
  //   Answers   kNotFound: no library serves the class, and no class file has a mistake.
  //             kClosing: the reloader is destroyed.
  //   Returns   False: too many errands wait, and `answer` is never called.
  bool reload(std::string segment, std::function<void(Result<Outcomes>)> answer);

  // The version before the one of the class's library goes on, if that one comes in or is in its
  // probation. Its content is refused until it changes, or reload() is called.
  //   Answers   Before the agents have moved: the file, as refused. Else as
  //             Rollouts::take_back().
  bool take_back(std::string segment, std::function<void(Result<Outcomes>)> answer);

  // As reload(), for a class that has left quarantine: describe() must say so already. If the class
  // was held back, it is served again. Content with these hashes is tried again.
  bool serve_again(std::string segment, std::vector<std::string> hashes,
                   std::function<void(Result<Outcomes>)> answer);

  // The files that are there and not served as they are, with the reason. A class file has one
  // entry for each mistake in it.
  [[nodiscard]] std::vector<Refusal> refusals() const;

  // The names of classes whose agents are moving to another version or to other settings.
  [[nodiscard]] std::vector<std::string> moving() const;

 private:
  void serve();
  void run(const Errand& errand);
  Result<Outcomes> look(const Errand& errand);
  [[nodiscard]] Result<FileChanges> changes_of(const Errand& errand);
  // Content that the ledger refuses is tried again if an operator asks. Content that was taken back
  // is tried again also if the settings of one of its classes, `segments`, have changed.
  void forgive(const Errand& errand, const std::set<std::string>& segments, FileChanges& changes);
  // If that frees a class, libraries that were refused because of a class are tried again.
  void take(const FileChanges& changes, Outcomes& outcomes);
  // Of the segments that were served, some may be free now: a library that was refused because
  // another one had its class is tried again.
  void follow_freed(const std::set<std::string>& served, Outcomes& outcomes);
  // Reads the class files. Returns the segments of classes for which they say something new.
  std::set<std::string> read(const Errand& errand, Outcomes& outcomes);
  void refuse(const config::Diagnostics& mistakes, Outcomes& outcomes);
  // Each library serves the classes that class files give its code now. A class with other code
  // moves at once, without a trial, and with all settings of its file. A class whose code no
  // library has is removed as with its library. A library whose version comes in waits until that
  // is in or taken back.
  void follow_class_files();
  // Moves classes that are not wanted from the library to `leaving`.
  void give_up_others(const std::filesystem::path& file, ServedLibrary& library,
                      const PluginLoader::Classes& wanted, ClassVersions& leaving);
  // Serves a class that was held back, with the code that it has. No agent of it is in memory.
  void release(const std::string& segment);
  // For refusals() and moving().
  void publish();

  const ReloadSettings settings_;

  Errands errands_;

  mutable Mutex mutex_;
  std::vector<Refusal> refusals_ GUARDED_BY(mutex_);
  std::vector<std::string> moving_ GUARDED_BY(mutex_);

  // Only the reloader's thread uses these.
  ServedLibraries libraries_;
  // The files that are there and not served as they are: the last refusal of each library, and each
  // mistake in a class file.
  std::map<std::filesystem::path, Refusal> refused_libraries_;
  std::vector<Refusal> refused_class_files_;
  RemovedClasses removed_;
  const RolloutParts parts_;
  Rollouts rollouts_;
  Counter& class_files_refused_;

  std::thread thread_;
  std::unique_ptr<DirectoryWatcher> watcher_;  // last: its thread uses errands_
};

}  // namespace hearth::plugins
