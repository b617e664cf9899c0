#pragma once
// From directories of files to classes that can be served.

#include "base/error.hpp"
#include "extensions/abi_host.hpp"
#include "plugins/admission/candidate.hpp"
#include "plugins/admission/file_rules.hpp"
#include "plugins/admission/probe.hpp"
#include "plugins/admission/process_guard.hpp"
#include "plugins/admission/staging.hpp"
#include "plugins/generation/plugin_generation.hpp"
#include "plugins/versions/class_claims.hpp"
#include "plugins/versions/loader_thread.hpp"
#include "plugins/versions/version_ledger.hpp"
#include "runtime/agent_class.hpp"
#include "runtime/version_news.hpp"

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace hearth::plugins {

struct LoaderOptions {
  std::filesystem::path staging_directory;  // "<data>/staged": ours alone, made if absent
  uid_t trusted_user;  // whose files are loaded, besides root's: the server's user
  std::chrono::milliseconds settle_time{200};
  ProbeOptions probe;
  // "<data>/checked": only what has a record there is loaded (K1). Empty: nobody asks.
  std::filesystem::path checked_directory;
  // When so many versions stay in memory that should have gone, what would add to them does not
  // replace what is served (R3).
  std::size_t max_pinned = 8;
  // Rings when a version has no agent any more, so that retire_unused() has something to do. May be
  // null.
  std::shared_ptr<runtime::VersionNews> news;
  ClassSegment class_segment;  // how a class is spelled in a URL; empty: as it is
  AliasedSegment aliased;      // asked on the loader's thread; empty: there are no aliases
  std::function<void(std::chrono::milliseconds)> pause;  // empty: really sleeps
};

// A library that is served.
struct LoadedPlugin {
  std::filesystem::path file;
  std::string plugin;   // from its manifest
  std::string version;  // from its manifest
  std::string sha256;
  std::uint64_t generation = 0;
  std::vector<Finding> warnings;
  std::vector<std::shared_ptr<const runtime::AgentClass>> classes;
  // Present: this is not what the file holds but the version before that. The hash of what it
  // holds; empty if that cannot be read.
  std::optional<std::string> instead_of = std::nullopt;
  bool on_trial = false;  // until prove(): the version before it is kept
};

// A file that is not served.
struct Refusal {
  std::filesystem::path file;
  std::string rule;         // "E6"
  std::string reason;       // "it has a run path (...): link it without -rpath"
  std::string sha256 = {};  // empty: it could not be read, or nobody asks

  // `plugins/a.so is refused by rule E6: it has a run path (...)`
  [[nodiscard]] std::string text() const;
};

// A directory from which nothing was loaded.
struct DirectoryFault {
  std::filesystem::path directory;
  Errc code;           // kNotFound: there is no such directory
  std::string reason;  // names it and says what to do
};

struct LoadReport {
  std::vector<LoadedPlugin> plugins;
  std::vector<Refusal> refusals;
  std::vector<DirectoryFault> faults;
};

// What became of a file that has changed.
struct VersionReport {
  std::optional<LoadedPlugin> plugin;  // the new version, to be served from now on
  std::optional<Refusal> refusal;      // why there is none; the version before it goes on
  bool unchanged = false;  // the same bytes as the version that is served: nothing was done
};

// One loaded version of a library.
struct GenerationInfo {
  enum class State {
    kCurrent,   // new agents get it
    kDraining,  // a later one is current, or the file is gone; agents of this one still live
    kRetired,   // no agent of it is left: it goes with the next retire_unused()
    kPinned,    // it should go and cannot
  };
  std::filesystem::path file;
  std::string plugin;
  std::string version;
  std::string sha256;
  std::uint64_t generation = 0;
  std::vector<std::string> classes;
  State state{};
  std::string pinned_because;
};
// "current", "draining", ...
std::string_view to_string(GenerationInfo::State state) noexcept;

// How many generations went, and which stayed, with the reason.
struct UnloadReport {
  struct Pinned {
    std::filesystem::path file;
    std::string reason;
  };
  std::size_t unloaded = 0;
  std::vector<Pinned> pinned;
};

// The path of a library: read once, rules, hash, private copy, trial in a child, load, init.
//
// Promises  One bad file costs only itself. Each refusal, warning and load is logged
//           (plugin.refused, plugin.warning, plugin.loaded, plugin.directory) and reported. What
//           the ledger refuses is refused before anything of it runs, and what fails its trial
//           process is noted there. What loading, init(), deinit() or unloading have changed in the
//           process (process_guard.hpp) is put back, and logged (plugin.process_restored), as are
//           handlers and a locale of a library that goes, whenever it has set them.
// Threads   Any one at a time; the work runs on the loader's own thread while the caller waits.
// Lifetime  Outlives every AgentClass it has given out, or leaves their libraries mapped. The
//           services and the ledger outlive it.
// Bounded   kMaxFiles in a directory; max_pinned by
//           replacements, and one beyond for each library whose first version that stays comes
//           after that; not what is removed and put back; a file and a trial as candidate.hpp and
//           probe.hpp say.
class PluginLoader {
 public:
  static constexpr std::size_t kMaxFiles = 1024;

  PluginLoader(const extensions::AbiServices& services, VersionLedger& ledger,
               LoaderOptions options);
  // Unloads what can be unloaded.
  ~PluginLoader();
  PluginLoader(const PluginLoader&) = delete;
  PluginLoader& operator=(const PluginLoader&) = delete;

  // Loads every *.so of each directory, in the order of the directories and of the names in them.
  // Names that begin with a dot are left alone: copying tools write there. A directory that was
  // read before is not read again. In place of content that was on trial when it ended the process
  // before, that was taken back, or is refused, the version before it is served, if that was kept:
  // then the file stands in the report's refusals, and among its plugins.
  //   Failure   Only if there is no staging area (StagingArea::open). All else is in the report.
  [[nodiscard]] Result<LoadReport> load_directories(
      const std::vector<std::filesystem::path>& directories);

  // Loads what `file` holds now, beside the version that is served, which nothing happens to. After
  // load_directories(). If the file is served by nothing, as at a start: then there may be a
  // refusal and the version before.
  [[nodiscard]] VersionReport load_version(const std::filesystem::path& file);

  // The version of `file` that load_version() has just made current is taken back: it is to go, and
  // the one before it, if that still is there, is current again, without the classes that another
  // file has claimed meanwhile. The ledger knows it as condemned, with `reason`.
  void take_back(const std::filesystem::path& file, std::uint64_t generation,
                 const std::string& reason);

  // The version that the file is served by is on trial and was found wanting: the version that was
  // kept is loaded beside it and is current from now on. The report is empty if there is no such
  // version (plugin.no_version_before says why), or nothing is on trial.
  [[nodiscard]] VersionReport go_back(const std::filesystem::path& file, const std::string& reason);

  // What the file is served by has run long enough, and is not on trial any more. Nothing happens
  // if it was not.
  void prove(const std::filesystem::path& file);

  // What the ledger says against content in this place.
  [[nodiscard]] std::optional<VersionLedger::Refusal> refusal(const std::filesystem::path& file,
                                                              const std::string& sha256) const {
    return ledger_.refusal(file, sha256);
  }

  // Content with this hash may be tried again, whatever was wrong with it before.
  void forgive(const std::string& sha256);

  // The file is gone: no generation of it is current any more, and other files may have its
  // classes. What was served is kept: what comes in its place later is on trial.
  void forget_file(const std::filesystem::path& file);

  // Ends those generations that are not current and of which no AgentClass lives. The others stay
  // for a later call.
  UnloadReport retire_unused();

  // Oldest first.
  [[nodiscard]] std::vector<GenerationInfo> generations();

  // How many of them are kPinned.
  //   Threads   Any, at any time.
  [[nodiscard]] std::size_t pinned() const noexcept { return pinned_.load(); }

  // Ends every library of which no AgentClass lives: deinit(), then dlclose. The others stay,
  // mapped until the process ends. Drop the report's classes and the runtime first.
  UnloadReport unload_all();

 private:
  // One library in service. A later version of it is another generation beside this one.
  struct Loaded {
    std::filesystem::path file;
    std::string sha256;
    StagedFile copy;
    std::shared_ptr<PluginGeneration> generation;
    bool current = true;
    bool will_stay = false;  // the file says so (E9)
    std::string pinned_because;
  };

  void load_directory(const std::filesystem::path& directory, LoadReport& report);
  void tell(const LoadedPlugin& plugin);
  Refusal refuse(const std::filesystem::path& file, const Finding& why,
                 const std::string& sha256 = {});
  Checked<Candidate> read(const std::filesystem::path& file);
  Checked<LoadedPlugin> load_candidate(const Candidate& candidate);
  // ---- trials (plugin_loader_trials.cpp) ----
  // What a file holds that nothing is served by; where it is refused, also the version before it,
  // if that is kept.
  VersionReport load_first(const std::filesystem::path& file);
  Checked<LoadedPlugin> load_met(const Candidate& candidate);
  void keep(const Loaded& served, const std::string& reason);
  std::optional<LoadedPlugin> load_before(const Candidate& instead_of);
  void tell_no_way_back(const std::filesystem::path& file, const std::string& reason);
  // A version beside the one that is served, which it is to replace.
  Checked<LoadedPlugin> try_beside(const Loaded& served, const Candidate& candidate);
  // Logs why something could not be noted; that is no reason not to go on.
  void noted(const Result<void>& outcome);
  [[nodiscard]] static Finding failed_before(const std::string& reason);
  [[nodiscard]] std::optional<Finding> too_many_pinned(const std::filesystem::path& file,
                                                       bool will_stay);
  Loaded* current_of(const std::filesystem::path& file);
  Checked<std::shared_ptr<PluginGeneration>> try_and_load(const Candidate& candidate,
                                                          const StagedFile& copy, PluginNote note);
  // Logs what was put back.
  void tell_restored(const std::vector<std::string>& changed, const std::filesystem::path& file);
  // True if it went.
  bool retire(Loaded& loaded, UnloadReport& report);

  extensions::AbiServices services_;
  VersionLedger& ledger_;
  LoaderOptions options_;
  std::atomic<std::size_t> pinned_{0};
  // From here on: the loader's thread only.
  std::optional<StagingArea> staging_;
  std::optional<ProcessSettings> first_;  // before any library; set with staging_
  ClassClaims claims_;
  std::vector<Loaded> loaded_;
  std::vector<std::filesystem::path> visited_;  // directories, with links resolved
  LoaderThread thread_;                         // last: its tasks use the fields above
};

}  // namespace hearth::plugins
