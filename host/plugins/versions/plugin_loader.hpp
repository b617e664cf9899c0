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
  std::filesystem::path staging_directory;  // "<data>/staged": of this server alone, made if absent
  uid_t trusted_user;  // the server's user: only its files and root's are loaded
  std::chrono::milliseconds settle_time{200};
  ProbeOptions probe;
  // "<data>/checked": only libraries with a record there are loaded (K1). Empty: no record is
  // needed.
  std::filesystem::path checked_directory;
  // From this many pinned versions on, a version that would be pinned too replaces none (R3).
  std::size_t max_pinned = 8;
  // Rings when a version has no agent any more: call retire_unused() then. May be null.
  std::shared_ptr<runtime::VersionNews> news;
  AliasedSegment aliased;  // called on the loader's thread; empty: there are no aliases
  // The classes that run the code of a library's class, as class files say now. Called on the
  // loader's thread, while the caller of the loader waits; empty: each library's own classes.
  PluginGeneration::NamesFor names;
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
  // Present: this is the version before the one that the file holds. The hash of the one that the
  // file holds; empty if it cannot be read.
  std::optional<std::string> instead_of = std::nullopt;
  bool on_trial = false;  // the version before is kept until prove()
};

// A file that is not served.
struct Refusal {
  std::filesystem::path file;
  std::string rule;         // "E6"
  std::string reason;       // "it has a run path (...): link it without -rpath"
  std::string sha256 = {};  // empty: it could not be read, or is not needed

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

// The result of a file's change. Both are absent if the file holds the served version.
struct VersionReport {
  std::optional<LoadedPlugin> plugin;  // the version to serve from now on
  std::optional<Refusal> refusal;      // why what the file holds is not served
};

// One loaded version of a library.
struct GenerationInfo {
  enum class State {
    kCurrent,   // new agents get it
    kDraining,  // not current; agents of it still live
    kRetired,   // not current; no agent of it is left: the next retire_unused() ends it
    kPinned,    // it cannot be unloaded
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

// The steps for a library: read once, rules, hash, private copy, trial in a child, load, init.
//
// Promises  One bad file costs only itself. Each refusal, warning and load is logged
//           (plugin.refused, plugin.warning, plugin.loaded, plugin.directory) and reported.
//           Content that the ledger refuses is refused before any of it runs. The ledger learns
//           which content fails its trial process.
//           What loading, init(), deinit() or unloading change in the process (process_guard.hpp)
//           is put back and logged (plugin.process_restored). So are the handlers and the locale of
//           a library that is unloaded, whenever it has set them.
// Threads   Any, one at a time. The work runs on the loader's own thread while the caller waits.
// Lifetime  It outlives every AgentClass that it has given out, or leaves their libraries mapped.
//           The services and the ledger outlive it.
// Bounded   kMaxFiles in a directory. Replacement stops at max_pinned; each library may add one
//           more. Removing a library and putting it back is not bounded. The limits of a file and a
//           trial are in candidate.hpp and probe.hpp.
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
  // It skips names that begin with a dot (copying tools write such files) and directories that were
  // read before. A version is not served if it crashed the process before while it was on trial,
  // was taken back, or is refused. Then the version before it is served, if one was kept: the file
  // is in the report's refusals and in its plugins.
  //   Failure   Only if there is no staging area (StagingArea::open). The report has other errors.
  [[nodiscard]] Result<LoadReport> load_directories(
      const std::vector<std::filesystem::path>& directories);

  // Loads what `file` holds now, beside the version that is served. That version stays as it is. If
  // no version of the file is served, this does what load_directories() does for a file: the report
  // may have a refusal and the version before.
  //   Requires  load_directories() was called.
  [[nodiscard]] VersionReport load_version(const std::filesystem::path& file);

  // Takes back the version of `file` that load_version() has just made current. If the version that
  // it replaced is still loaded, that one is current again, without the classes that another file
  // has claimed meanwhile. The ledger condemns the version, with `reason`. Returns the hash of the
  // version that is current again; empty: none is.
  std::string take_back(const std::filesystem::path& file, std::uint64_t generation,
                        const std::string& reason);

  // The classes that run the code of the file's current version, made anew, as class files say now;
  // absent: no version is current.
  using Classes = std::vector<std::shared_ptr<const runtime::AgentClass>>;
  [[nodiscard]] std::optional<Classes> classes_of(const std::filesystem::path& file);

  // The version on trial has failed: loads the version that was kept beside it, and makes that one
  // current. The report is empty if there is no such version (plugin.no_version_before says why),
  // or if nothing is on trial: then nothing has changed.
  [[nodiscard]] VersionReport go_back(const std::filesystem::path& file, const std::string& reason);

  // The served version of the file has run long enough: ends its trial, if it is on trial.
  void prove(const std::filesystem::path& file);

  // Why the ledger refuses the content in this place; absent: it does not.
  [[nodiscard]] std::optional<VersionLedger::Refusal> refusal(const std::filesystem::path& file,
                                                              const std::string& sha256) const {
    return ledger_.refusal(file, sha256);
  }

  // Content with this hash may be tried again, whatever was wrong with it before.
  void forgive(const std::string& sha256);

  // The file is gone: no generation of it is current any more, and other files may claim its
  // classes. The ledger keeps the served version: a version that comes in its place is on trial.
  void forget_file(const std::filesystem::path& file);

  // Ends the generations that are not current and have no AgentClass left. Others stay for a later
  // call. Returns how many were unloaded.
  std::size_t retire_unused();

  // Oldest first.
  [[nodiscard]] std::vector<GenerationInfo> generations();

  // How many generations are kPinned.
  //   Threads   Any, at any time.
  [[nodiscard]] std::size_t pinned() const noexcept { return pinned_.load(); }

  // Ends every library that has no AgentClass left: deinit(), then dlclose. Others stay mapped
  // until the process ends. Destroy the report's classes and the runtime first. Returns how many
  // were unloaded.
  std::size_t unload_all();

 private:
  // One library in service. A later version of it is another generation beside this one.
  struct Loaded {
    std::filesystem::path file;
    std::string sha256;
    StagedFile copy;
    std::shared_ptr<PluginGeneration> generation;
    bool current = true;
    bool taken_back = false;
    bool will_stay = false;  // the file forbids unloading (E9)
    std::string pinned_because;
  };

  void load_directory(const std::filesystem::path& directory, LoadReport& report);
  void tell(const LoadedPlugin& plugin);
  Refusal refuse(const std::filesystem::path& file, const Finding& why,
                 const std::string& sha256 = {});
  Checked<Candidate> read(const std::filesystem::path& file);
  Checked<LoadedPlugin> load_candidate(const Candidate& candidate);
  // ---- trials ----
  // Loads what the file holds while no version of it is served. If that is refused, loads the
  // version before it, if one is kept.
  VersionReport load_first(const std::filesystem::path& file);
  // Loads it as the ledger allows. `served`: the version that it will replace; null: none is.
  Checked<LoadedPlugin> try_content(const Candidate& candidate, const Loaded* served);
  void keep(const Loaded& served, const std::string& reason);
  // `sha256`: as VersionLedger::go_back().
  std::optional<LoadedPlugin> load_before(const std::filesystem::path& file,
                                          const std::string& instead_of,
                                          const std::string& sha256 = {});
  [[nodiscard]] bool is_on_trial(const std::filesystem::path& file,
                                 const std::string& sha256) const;
  // Logs a failure of the ledger; the loader goes on.
  void noted(const Result<void>& outcome);
  [[nodiscard]] std::optional<Finding> too_many_pinned(const std::filesystem::path& file,
                                                       bool will_stay);
  Loaded* current_of(const std::filesystem::path& file);
  Checked<std::shared_ptr<PluginGeneration>> try_and_load(const Candidate& candidate,
                                                          const StagedFile& copy, PluginNote note);
  // Logs what was put back.
  void tell_restored(const std::vector<std::string>& changed, const std::filesystem::path& file);
  // True if it was unloaded.
  bool retire(Loaded& loaded);

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
