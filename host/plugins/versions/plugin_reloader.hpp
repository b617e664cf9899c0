#pragma once
// Replaces libraries and the settings of classes while the server runs.

#include "base/clock.hpp"
#include "base/logger.hpp"
#include "plugins/versions/class_configuration.hpp"
#include "plugins/versions/code_rollouts.hpp"
#include "plugins/versions/directory_watcher.hpp"
#include "plugins/versions/errands.hpp"
#include "plugins/versions/plugin_loader.hpp"
#include "plugins/versions/reload_board.hpp"
#include "plugins/versions/served_libraries.hpp"
#include "plugins/versions/settings_rollouts.hpp"
#include "plugins/versions/shard_patience.hpp"
#include "runtime/class_rollout.hpp"
#include "runtime/runtime.hpp"
#include "telemetry/metrics.hpp"

#include <chrono>
#include <filesystem>
#include <functional>
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
  bool watch = true;                          // else only reload() looks
  std::chrono::milliseconds quiet_time{300};
  // How long the clients of a library that was removed wait for it to come back.
  std::chrono::milliseconds removal_grace{10'000};
  runtime::RolloutSettings rollout;
  // How long a version must have run, once all agents have moved to it, until there is no way back
  // from a crash (VersionLedger::prove).
  std::chrono::milliseconds probation{60'000};
  // What the class files say; from now on it is the reloader's thread's.
  ClassConfiguration* configuration = nullptr;
  ServedLibraries::Describe describe;
};

// file           its classes
// changed        the new version is checked and tried as at the start of the server; if that fails
//                the old one goes on. Else a rollout begins for each class
//                (runtime/class_rollout.hpp). If one is taken back all of the library are, until
//                the file or the settings of its classes change, or somebody asks for a reload.
// new            are served
// gone           new wakes are refused (503), also after the grace; live agents are evicted,
//                clients that are connected wait for removal_grace and are then closed (1012). All
//                of them come back, until the file does.
//
// class files    all are read anew. A mistake in one of them, and nothing changes; it is logged
//                (config.refused) and told. Else a rollout begins for each class whose settings are
//                others now (config.changed), as for a new version of its code, but each for
//                itself: if agents fail on them the settings before go on (config.taken_back),
//                until the file changes, a new version of the library is in, or somebody asks for a
//                reload. Aliases of a class hold at once and move no agent
//
// Promises
//  P1 Two at most  Of one library at most two versions have agents. A third one ends the trial of
//                  the second, and what an earlier one has left in memory goes suddenly before it
//                  begins: evict_grace is cut short, and `drain` does not count. Agents of a shard
//                  that does not answer are left behind (P5).
//  P2 Unmapped     A version is unloaded as soon as no agent of it is left, or pinned with a
//                  reason.
//  P3 Told         Each step is logged: reload.begun, reload.done, reload.taken_back,
//                  reload.removed, and what the loader tells. Of settings: config.refused,
//                  config.changed, config.done, config.taken_back.
//  P4 The newest   Of changes that come while it is busy the last state of each file counts.
//                  Settings that change while a version of the library comes in follow when it is
//                  in, or taken back. Settings that are on trial when a version comes go on trial
//                  with it; if that is taken back, again without it.
//  P5 Never stuck  A shard that is held up by some agent's code is waited for a second at most,
//                  once for all that changes together, and a second for P1; its agents follow when
//                  it goes on.
//  P6 Way back     A version that ends the server while it comes in, or within its probation, is
//                  not what the next start serves: the loader puts down what is on trial, and here
//                  is said when it is proven. If fewer agents live than a trial asks for, the first
//                  that wake judge it too, as many as would have tried it; if no more than some
//                  have come when its probation ends, and none of them could start, it goes as
//                  well. What is served in place of what a file holds is told as if it had been
//                  taken back now, and is tried again as such. One with a newer schema of a class
//                  is proven once it is judged: when agents have migrated, those before it could
//                  not serve them. So it is with settings: those that an agent ends the server on
//                  before their probation is over are taken back by the next start.
//
// Threads    The constructor starts one of its own, which sleeps until something happens: an order,
//            a change of files, news of agents (runtime/version_news.hpp), or a deadline. The rest
//            from any thread.
// Lifetime   Everything it is given outlives it. Destroy it before the runtime stops.
class PluginReloader {
 public:
  // `report`: what the loader has loaded at the start, which is served already.
  PluginReloader(const LoadReport& report, PluginLoader& loader, runtime::Runtime& runtime,
                 const Clock& clock, Logger& logger, Metrics& metrics, ReloadSettings settings);
  ~PluginReloader();
  PluginReloader(const PluginReloader&) = delete;
  PluginReloader& operator=(const PluginReloader&) = delete;

  // Looks at the directories now, whether anything was noticed or not.
  void reload();

  using Outcome = ReloadOutcome;
  using Outcomes = ReloadOutcomes;
  // As reload(), and answers when each file was read and tried, once, on the reloader's thread.
  // With a segment only the file that serves that class is looked at, and what class files say of
  // it; kNotFound if there is no such library and no class file has a mistake.
  // kClosing: the reloader is destroyed.
  // False: too many wait for an answer, and this one gets none.
  bool reload(std::string segment, std::function<void(Result<Outcomes>)> answer);

  // The same for a class that was in quarantine, as describe() says from now on whether it is: it
  // is served again if it was held back, and content with these hashes is tried again.
  bool serve_again(std::string segment, std::vector<std::string> hashes,
                   std::function<void(Result<Outcomes>)> answer);

  // The files that are there and not served as they are, with the reason; a class file stands once
  // for each mistake in it.
  [[nodiscard]] std::vector<Refusal> refusals() const { return board_.refusals(); }

  // The names of classes whose agents are on their way to another version or to other settings.
  [[nodiscard]] std::vector<std::string> moving() const { return board_.moving(); }

 private:
  void serve();
  void run(const Errand& errand);
  Result<Outcomes> look(const Errand& errand);
  [[nodiscard]] Result<FileChanges> changes_of(const Errand& errand);
  // What files hold and the ledger refuses is tried again if a person asks; what was taken back
  // also if its settings (of these classes) are others now.
  void forgive(const Errand& errand, const std::set<std::string>& segments, FileChanges& changes);
  void take(const FileChanges& changes, Outcomes& outcomes);
  void drive();  // what is under way
  [[nodiscard]] bool expects_news() const;
  [[nodiscard]] std::optional<SteadyTime> next_deadline() const;
  void publish();

  PluginLoader& loader_;
  runtime::Runtime& runtime_;
  const ReloadSettings settings_;

  ReloadBoard board_;
  Errands errands_;

  // The thread's.
  ServedLibraries libraries_;
  ShardPatience patience_;
  const RolloutParts parts_;
  SettingsRollouts of_settings_;
  CodeRollouts of_code_;

  std::thread thread_;
  std::unique_ptr<DirectoryWatcher> watcher_;  // last: it calls us
};

}  // namespace hearth::plugins
