#pragma once
// Replaces libraries and the settings of classes while the server runs.

#include "base/clock.hpp"
#include "base/logger.hpp"
#include "plugins/versions/class_configuration.hpp"
#include "plugins/versions/directory_watcher.hpp"
#include "plugins/versions/errands.hpp"
#include "plugins/versions/plugin_loader.hpp"
#include "plugins/versions/probation.hpp"
#include "plugins/versions/reload_board.hpp"
#include "runtime/class_rollout.hpp"
#include "runtime/runtime.hpp"
#include "telemetry/metrics.hpp"

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
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
  // A class of a library as it is to be served: its segment, and its settings as that has them.
  std::function<runtime::ServedClass(const std::shared_ptr<const runtime::AgentClass>&)> describe;
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
  // With a segment only the file that serves that class is looked at; kNotFound if there is none.
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
  using Served = std::shared_ptr<const runtime::ServedClass>;
  // A class as it is served, and where its settings are from.
  struct Version {
    Served served;
    ClassConfiguration::Settings settings;
  };
  using Versions = std::map<std::string, Version>;  // by segment
  // One library, by its file.
  struct Library {
    std::uint64_t generation = 0;
    Versions classes;
    // While a new version comes in: the classes on their way, and what to go back to.
    std::vector<std::unique_ptr<runtime::ClassRollout>> rollouts;
    Versions classes_before;
    std::uint64_t generation_before = 0;
    std::string hash;  // of what came in last
    bool on_trial =
        false;  // what came in last is on trial on disk: a version to go back to is kept
    // The classes, by segment, of which fewer agents than a trial asks for have woken on it: the
    // first of them are watched as long as its probation lasts.
    std::set<std::string> untried;
    bool has_newer_schema = false;  // than the version before, of some class
    // By segment: of the version that was taken back last. Other settings of these may mend it.
    std::set<std::string> failed_classes;
    // How many agents were on trial with what was put off or taken back a moment ago, and are to
    // judge what follows, by segment.
    std::map<std::string, std::size_t> awaited;
  };
  struct Removed {
    std::vector<std::string> segments;
    SteadyTime give_up_at;
  };

  // A class on its way to other settings, on the same code.
  struct Move {
    std::filesystem::path library;
    Version before;
    Version next;
    std::unique_ptr<runtime::ClassRollout> rollout;
  };

  void serve();
  void run(const Errand& errand);
  Result<Outcomes> look(const Errand& errand);
  [[nodiscard]] Result<FileChanges> changes_of(const Errand& errand);
  [[nodiscard]] Version version_of(const std::shared_ptr<const runtime::AgentClass>& agent_class);
  [[nodiscard]] Served served_now(const Version& version);
  [[nodiscard]] runtime::RolloutSettings rollout_settings() const;
  [[nodiscard]] static std::size_t awaited_of(const Library& library, const std::string& segment);
  void release(const Errand& errand);
  // What files hold and the ledger refuses is tried again if a person asks; what was taken back
  // also if its settings (of these classes) are others now.
  void forgive(const Errand& errand, const std::set<std::string>& segments, FileChanges& changes);
  void take(const FileChanges& changes, Outcomes& outcomes);
  Outcome changed(const std::filesystem::path& file);
  // A file that holds what is served, or what is on its way to be.
  [[nodiscard]] Outcome unchanged(const std::filesystem::path& file) const;
  // In the place of whatever serves the file, or is on its way.
  void bring_in(const std::filesystem::path& file, const LoadedPlugin& plugin, std::string& note);
  void gone(const std::filesystem::path& file);
  void refuse_what_may_not_run(VersionReport& report);
  void begin(const std::filesystem::path& file, Library& library, const LoadedPlugin& plugin,
             std::string& note);
  // The result goes when something else serves the classes: agents that could not start on what was
  // on trial meet that.
  using Rollouts = std::vector<std::unique_ptr<runtime::ClassRollout>>;
  [[nodiscard]] Rollouts overtake(const std::filesystem::path& file, Library& library);
  void expel_earlier(const std::filesystem::path& file, const Library& library);
  void remove(const std::filesystem::path& file, const Versions& classes);
  void drive();  // what is under way
  void drive(const std::filesystem::path& file, Library& library);
  [[nodiscard]] bool busy() const;
  // Whether what agents do may bring something further.
  [[nodiscard]] bool expects_news() const;
  // When something is to be done without any news. Absent: never.
  [[nodiscard]] std::optional<SteadyTime> next_deadline() const;
  void publish();

  // ---- the way back (plugin_reloader_trials.cpp) ----
  void take_back(const std::filesystem::path& file, Library& library);
  void begin_probation(const std::filesystem::path& file);
  // Whether too many of the first agents of some class could not start, and the library is on its
  // way back.
  bool goes_back(const std::filesystem::path& file, Library& library, bool is_over);
  void go_back(const std::filesystem::path& file, Library& library, const std::string& reason);
  void end_probations();
  // Logs and counts it.
  void tell_taken_back(const std::filesystem::path& file, Library& library, const std::string& hash,
                       const std::string& reason);
  // As refusals() tells it from now on.
  void refuse_taken_back(const std::filesystem::path& file, const std::string& hash);
  // What came in is served by all agents that live: from the next look on goes_back() judges it, by
  // those that tried it too.
  void watch_first_wakes(const std::filesystem::path& file, Library& library);
  // What a start found to be on trial, or to be condemned.
  void adopt_trial(const LoadedPlugin& plugin, const std::vector<Refusal>& refusals);

  // ---- settings of classes (plugin_reloader_settings.cpp) ----
  // The segments of classes whose files say something else now.
  std::set<std::string> read_class_files(const Errand& errand, Outcomes& outcomes);
  void refuse_class_files(const config::Diagnostics& mistakes, Outcomes& outcomes);
  // For each class that is not served with the settings that hold for it, unless its library is
  // busy.
  void begin_moves(Outcomes& outcomes);
  void begin_move(const std::filesystem::path& file, const std::string& segment, Version& version,
                  const std::vector<std::string>& keys, Outcomes& outcomes);
  // Log it; done is counted too.
  void tell_change(const Version& version, const std::vector<std::string>& keys,
                   std::size_t trying);
  void tell_done(const Version& version);
  void drive_moves();
  // Those that have begun before, of the classes that the errand is about, unless they are told.
  void tell_moves(const Errand& errand, Outcomes& outcomes) const;
  void take_back(const std::string& segment, const Move& move);
  // Nobody is waited for any more: something newer comes, or the library goes.
  void end_moves(const std::filesystem::path& library);
  // `next` is about to hold in place of `before`: the ledger knows it first.
  void note_trial(const Version& next, const Version& before);
  // All agents have the settings that are on trial, if any are.
  void begin_settings_probation(const std::string& segment, const Version& version);
  void end_settings_probations();
  // What a start found of settings that are on trial, or were taken back.
  void adopt_settings();
  void tell_settings_taken_back(std::string_view agent_class, const std::string& file,
                                const std::string& reason, const std::string& advice);
  void noted(const Result<void>& outcome);
  // A version of the library comes in: settings that are still on trial are not proven by that. The
  // way back leads behind them.
  void put_off_trials(const std::filesystem::path& file, Library& library);
  // What is to be known of a rollout that has just begun. Logs it once an errand, after which
  // nobody waits for shards any more.
  [[nodiscard]] std::string tell_silence(const runtime::ClassRollout& rollout);

  PluginLoader& loader_;
  runtime::Runtime& runtime_;
  const Clock& clock_;
  Logger& logger_;
  const ReloadSettings settings_;
  Counter& reloads_;
  Counter& refusals_;
  Counter& rollbacks_;
  Counter& settings_changes_;
  Counter& settings_refusals_;
  Counter& settings_rollbacks_;

  // The thread's.
  std::map<std::filesystem::path, Library> libraries_;
  std::map<std::string, Move> moves_;  // by segment
  std::map<std::filesystem::path, Removed> removed_;
  // What is served no more and may have agents that nobody waits for, by library.
  std::map<std::filesystem::path, std::vector<Served>> earlier_;
  Probation<std::filesystem::path> probation_;
  Probation<std::string> settings_probation_;  // of classes, by segment
  std::string silence_;  // of which shards the errand's rollouts have no answer; empty: all answer
  bool retiring_ = false;  // a version may be left to unload

  ReloadBoard board_;
  Errands errands_;

  std::thread thread_;
  std::unique_ptr<DirectoryWatcher> watcher_;  // last: it calls us
};

}  // namespace hearth::plugins
