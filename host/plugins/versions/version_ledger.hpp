#pragma once
// The record of what is known about versions of libraries and settings of classes, in memory and on
// disk.

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/mutex.hpp"
#include "plugins/admission/candidate.hpp"
#include "plugins/versions/version_facts.hpp"

#include <sys/types.h>

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::plugins {

// Facts (version_facts.hpp) with their files (version_files.hpp). The loader, the reloader, the
// quarantine and the administration ask the ledger, and keep no facts of their own.
//
// Promises
//  P1 Before    The trial is on disk when begin() returns: the code may run after that.
//  P2 Whole     After a crash or a loss of power versions.json has the facts before a change or
//               after it, and the bytes that it names are on disk.
//  P3 Verified  go_back() gives bytes with the recorded hash, or none.
//  P4 Tidy      Bytes that no trial names are removed with the next change.
//  P5 Caution   A change that cannot be written does not happen, except for the changes below.
//  P6 Damage    A file that the server did not write is renamed with the suffix `.damaged`, and the
//               ledger begins without its facts: problems() says so.
//
// P5: crashed(), lose(), refuse(), allow() and note() hold for this process even if they cannot be
// written, and are written with the next change.
//
// Bounded    kMaxLibraries; the last kMaxGone trials whose libraries are gone; otherwise as in
//            version_facts.hpp.
// Threads    Any. Only changes wait for the disk.
// Failure    The system's error (kUnavailable, kForbidden, kInternal), with the path.
class VersionLedger {
 public:
  static constexpr std::size_t kMaxLibraries = 1024;  // with a trial
  static constexpr std::size_t kMaxGone = 32;

  // `data`: a directory whose lock this process holds. `host`: the version of this server.
  VersionLedger(std::filesystem::path data, std::string host);
  VersionLedger(const VersionLedger&) = delete;
  VersionLedger& operator=(const VersionLedger&) = delete;

  // Errors at the start: files that could not be read or made. The ledger works all the same.
  [[nodiscard]] const std::vector<Error>& problems() const { return problems_; }

  // ---- questions ----

  [[nodiscard]] VersionFacts facts() const;

  // Why content must not run in this place: the rule, and a reason for an operator.
  struct Refusal {
    std::string rule;
    std::string reason;
  };
  [[nodiscard]] std::optional<Refusal> refusal(const std::filesystem::path& file,
                                               std::string_view sha256) const;
  [[nodiscard]] bool is_quarantined(std::string_view agent_class, std::string_view sha256) const;
  // Oldest first.
  [[nodiscard]] std::vector<ClassFacts> quarantined() const;
  [[nodiscard]] std::optional<Trial> find(const std::filesystem::path& file) const;
  [[nodiscard]] std::optional<Trial> find(const Subject& of) const;
  // Some library with this content is on trial.
  [[nodiscard]] bool is_on_trial(std::string_view sha256) const;
  // Of settings. Oldest first.
  [[nodiscard]] std::vector<Trial> settings() const;

  // Writes changes that could not be written before. True: the file has all changes.
  bool catch_up();

  // ---- the quarantine ----

  struct Counted {
    bool is_quarantined;   // a class has entered quarantine, or is barred now
    Result<void> written;  // a failure: the change holds as long as this process runs
  };
  // This call crashed the process before.
  [[nodiscard]] Counted crashed(const diagnosis::CrashRecord& crash);
  // `given`: the class name, or the name as URLs spell it. Returns what was in quarantine.
  //   Failure   Also kNotFound: it is not in quarantine. A sentence for an operator.
  [[nodiscard]] Result<std::vector<ClassFacts>> release(const std::string& given,
                                                        const std::string& by);

  // ---- trials ----

  // A version, and the copy of it that was loaded.
  struct Version {
    std::string sha256;
    std::filesystem::path copy;
  };
  // Puts the content `next` of the file on trial; `served` is kept until `next` is proven. If
  // `next` is the proven content, there is no trial.
  //   Failure   Also kLimitExceeded; kInvalidArgument: the file's name is not UTF-8.
  [[nodiscard]] Result<void> begin(const std::filesystem::path& file, const std::string& next,
                                   const Version& served);
  // The content on trial is not served: `goes_on`, a hash, is.
  [[nodiscard]] Result<void> lose(const std::filesystem::path& file, const std::string& goes_on,
                                  Trial::NotServed what);
  // The version has run long enough. Does nothing if it is not on trial.
  [[nodiscard]] Result<void> prove(const std::filesystem::path& file, const Version& version);
  // The file is gone or cannot be read, and `served` runs.
  //   Failure   As begin().
  [[nodiscard]] Result<void> keep(const std::filesystem::path& file, const Version& served,
                                  const std::string& reason);
  // The file holds the content that runs.
  [[nodiscard]] Result<void> settle(const std::filesystem::path& file);
  // The file holds this content, and no version of it is served.
  [[nodiscard]] Result<void> meet(const std::filesystem::path& file, const std::string& sha256);
  // The content has failed its trial process.
  [[nodiscard]] Result<void> refuse(const std::string& sha256, const std::string& rule,
                                    const std::string& reason);
  // The content may be tried again, whatever the reason against it.
  [[nodiscard]] Result<void> allow(const std::string& sha256);

  // An event of settings. After a failure the change holds as long as this process runs.
  Result<void> note(const VersionEvent& event);

  // The version to go back to, or the one with this hash, as if the file held it.
  //   Failure   kNotFound: none is kept. kInternal: its bytes have changed or cannot be read.
  [[nodiscard]] Result<Candidate> go_back(const std::filesystem::path& file, const Clock& clock,
                                          uid_t user, std::string sha256 = {}) const;

 private:
  enum class Unwritten { kUndone, kHoldsAnyway };
  // `kept`: a version that a new trial may name: then its bytes are stored first.
  [[nodiscard]] Result<void> change(const VersionEvent& event, Unwritten unwritten,
                                    const Version* kept = nullptr);
  [[nodiscard]] Result<void> write(const VersionFacts& after, const Version* kept);
  [[nodiscard]] Result<void> check_file(const std::filesystem::path& file) const;
  [[nodiscard]] Result<void> keep_bytes(const Version& version) const;
  void read();
  void tidy(const VersionFacts& after) const;

  const std::filesystem::path data_;
  const std::string host_;
  std::vector<Error> problems_;
  std::optional<Error> no_bytes_;                 // why no bytes can be kept
  Mutex changing_;                                // taken first, and held while the file is written
  bool is_behind_ GUARDED_BY(changing_) = false;  // the file lacks a change
  mutable Mutex mutex_;                           // never held during a wait: event loops take it
  VersionFacts facts_ GUARDED_BY(mutex_);
};

}  // namespace hearth::plugins
