#pragma once
// Replaces libraries while the server runs.

#include "base/clock.hpp"
#include "base/logger.hpp"
#include "base/metrics.hpp"
#include "loader/directory_watcher.hpp"
#include "loader/plugin_loader.hpp"
#include "runtime/class_rollout.hpp"
#include "runtime/runtime.hpp"

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace hearth::app {

struct ReloadSettings {
  std::vector<std::filesystem::path> directories;
  loader::DirectoryImage known;  // what they held when the loader read them
  bool watch = true;             // else only reload() looks
  std::chrono::milliseconds quiet_time{300};
  // How long the clients of a library that was removed wait for it to come back.
  std::chrono::milliseconds removal_grace{10'000};
  runtime::RolloutSettings rollout;
  // A class of a library as it is to be served: its segment, and its settings as the configuration has them.
  std::function<runtime::ServedClass(const std::shared_ptr<const runtime::AgentClass>&)> describe;
};

// file           its classes
// changed        the new version is checked and tried as at the start of the server; if that fails the old one goes on. Else a rollout
//                begins for each class (runtime/class_rollout.hpp). If one is taken back all of the library are.
// new            are served
// gone           new wakes are refused (503), live agents are evicted, clients wait for removal_grace and are then closed (1012)
//
// Promises
//  P1 Two at most  Of one library at most two versions have agents. A third one ends the trial of the second, and moves what is left
//                  of the first at once.
//  P2 Unmapped     A version is unloaded as soon as no agent of it is left, or pinned with a reason.
//  P3 Told         Each step is logged: reload.begun, reload.done, reload.taken_back, reload.removed, and what the loader tells.
//
// Threads    The constructor starts one of its own. The rest from any thread.
// Lifetime   Everything it is given outlives it. Destroy it before the runtime stops.
class PluginReloader {
 public:
  // `report`: what the loader has loaded at the start, which is served already.
  PluginReloader(const loader::LoadReport& report, loader::PluginLoader& loader,
                 runtime::Runtime& runtime, const Clock& clock, Logger& logger, Metrics& metrics,
                 ReloadSettings settings);
  ~PluginReloader();
  PluginReloader(const PluginReloader&) = delete;
  PluginReloader& operator=(const PluginReloader&) = delete;

  // Looks at the directories now, whether anything was noticed or not.
  void reload();

  // What came of one file.
  struct Outcome {
    enum class What { kUnchanged, kNewVersion, kRefused, kRemoved };
    std::filesystem::path file;
    What what{};
    std::string version;           // of the new one, whose rollout has begun
    std::uint64_t generation = 0;  // the same
    std::string reason;            // why it was refused
  };
  using Outcomes = std::vector<Outcome>;
  // As reload(), and answers when each file was read and tried, once, on the reloader's thread. With a segment only the file that
  // serves that class is looked at; kNotFound if there is none. kClosing: the reloader is destroyed.
  // False: too many wait for an answer, and this one gets none.
  bool reload(std::string segment, std::function<void(Result<Outcomes>)> answer);

  // The files that are there and not served as they are, with the reason.
  [[nodiscard]] std::vector<loader::Refusal> refusals();

 private:
  using Served = std::shared_ptr<const runtime::ServedClass>;
  // One library, by its file.
  struct Library {
    std::uint64_t generation = 0;
    std::map<std::string, Served> classes;  // by segment
    // While a new version comes in: the classes on their way, and what to go back to.
    std::vector<std::unique_ptr<runtime::ClassRollout>> rollouts;
    std::map<std::string, Served> classes_before;
    std::uint64_t generation_before = 0;
  };
  struct Removed {
    std::vector<std::string> segments;
    SteadyTime give_up_at;
  };

  // What the thread is to look at.
  struct Errand {
    loader::FileChanges changes;
    bool all = false;     // all files there are, whatever changed
    std::string segment;  // not empty: of those only the one that serves this class
    std::function<void(Result<Outcomes>)> answer;  // may be absent
  };

  void serve();
  void send(Errand errand);
  void run(const Errand& errand);
  [[nodiscard]] Result<loader::FileChanges> changes_of(const Errand& errand) const;
  Outcomes take(const loader::FileChanges& changes);
  Outcome changed(const std::filesystem::path& file);
  void gone(const std::filesystem::path& file);
  void refuse_what_may_not_run(loader::VersionReport& report);
  void begin(const std::filesystem::path& file, Library& library,
             const loader::LoadedPlugin& plugin);
  void remove(const std::filesystem::path& file, std::map<std::string, Served> classes);
  void drive();  // what is under way
  void drive(const std::filesystem::path& file, Library& library);
  void take_back(const std::filesystem::path& file, Library& library);
  [[nodiscard]] bool busy() const;

  loader::PluginLoader& loader_;
  runtime::Runtime& runtime_;
  const Clock& clock_;
  Logger& logger_;
  const ReloadSettings settings_;
  Counter& reloads_;
  Counter& refusals_;
  Counter& rollbacks_;

  // The thread's.
  std::map<std::filesystem::path, Library> libraries_;
  std::map<std::filesystem::path, Removed> removed_;
  bool retiring_ = false;  // a version may be left to unload

  std::mutex mutex_;
  std::condition_variable news_;
  std::deque<Errand> errands_;                                // guarded by mutex_
  bool stopping_ = false;                                     // guarded by mutex_
  std::map<std::filesystem::path, loader::Refusal> refused_;  // guarded by mutex_

  std::thread thread_;
  std::unique_ptr<loader::DirectoryWatcher> watcher_;  // last: it calls us
};

}  // namespace hearth::app
