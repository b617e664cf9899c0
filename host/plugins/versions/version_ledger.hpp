#pragma once
// The one record of what is known about versions of libraries and settings of classes, in memory
// and on the disk.

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
// quarantine and the administrators ask it and remember nothing of their own.
//
// Promises
//  P1 Before    What begin() has said is on the disk when it returns: the code may run after it.
//  P2 Whole     versions.json is replaced: after a crash, or a loss of power, it has the facts
//               before a change or after it. The bytes that it names are on the disk before it.
//  P3 Verified  go_back() gives bytes with the hash that was noted, or none.
//  P4 Tidy      Bytes that no place names go with the next change.
//  P5 Caution   A change that cannot be written has not happened, except for what speaks against a
//               version: that holds as long as this process runs, and is written with the next
//               change.
//  P6 Moved     Files of earlier servers are taken over, and removed when versions.json is written.
//  P7 Damage    A file that is not ours is put aside with the suffix `.damaged`, and the ledger
//               begins without its facts: problems() says so.
//
// Bounded    kMaxPlaces; of places whose files are gone the last kMaxGone; else as
//            version_facts.hpp.
// Threads    Any. Only changes wait for the disk.
// Failure    What the system says (kUnavailable, kForbidden, kInternal), with the path.
class VersionLedger {
 public:
  static constexpr std::size_t kMaxPlaces = 1024;
  static constexpr std::size_t kMaxGone = 32;

  // `data`: a directory whose lock this process holds. `host`: the version of this server.
  VersionLedger(std::filesystem::path data, std::string host);
  VersionLedger(const VersionLedger&) = delete;
  VersionLedger& operator=(const VersionLedger&) = delete;

  // What could not be read or made at the start. The ledger works all the same.
  [[nodiscard]] const std::vector<Error>& problems() const { return problems_; }

  // ---- questions ----

  [[nodiscard]] VersionFacts facts() const;

  // Why content must not run in this place: the rule, and words for an operator.
  struct Refusal {
    std::string rule;
    std::string reason;
  };
  [[nodiscard]] std::optional<Refusal> refusal(const std::filesystem::path& file,
                                               std::string_view sha256) const;
  [[nodiscard]] bool is_quarantined(std::string_view agent_class, std::string_view sha256) const;
  // Oldest first.
  [[nodiscard]] std::vector<ClassFacts> quarantined() const;
  [[nodiscard]] std::optional<Place> find(const std::filesystem::path& file) const;

  // Of a class as URLs spell it.
  [[nodiscard]] std::optional<SettingsFacts> find_settings(std::string_view agent_class) const;

  // Writes what could not be written before. True: nothing is missing.
  bool catch_up();

  // ---- the quarantine ----

  struct Counted {
    bool is_quarantined;   // a class is in quarantine from now on, and was not before
    Result<void> written;  // a failure: this holds as long as this process runs
  };
  // The process before was ended by this call.
  [[nodiscard]] Counted crashed(const diagnosis::CrashRecord& crash);
  // The class that a person names, as it is or as URLs spell it. What was in quarantine.
  //   Failure   Also kNotFound: it is not in quarantine. A sentence for a person.
  [[nodiscard]] Result<std::vector<ClassFacts>> release(const std::string& given,
                                                        const std::string& by);

  // ---- trials ----

  // A version, and the copy of it that was loaded.
  struct Version {
    std::string sha256;
    std::filesystem::path copy;
  };
  // `served` goes on until the content `next` of the file is proven. With `next` proven already
  // there is nothing to try.
  //   Failure   Also kLimitExceeded; kInvalidArgument: the file's name is not UTF-8.
  [[nodiscard]] Result<void> begin(const std::filesystem::path& file, const std::string& next,
                                   const Version& served);
  // What is on trial is not served: `goes_on` is, by its hash.
  [[nodiscard]] Result<void> lose(const std::filesystem::path& file, const std::string& goes_on,
                                  Place::NotServed what);
  // Only if it is on trial.
  [[nodiscard]] Result<void> prove(const std::filesystem::path& file, const Version& version);
  // The file is gone or cannot be read, and `served` runs.
  //   Failure   As begin().
  [[nodiscard]] Result<void> keep(const std::filesystem::path& file, const Version& served,
                                  const std::string& reason);
  // The file holds what runs.
  [[nodiscard]] Result<void> settle(const std::filesystem::path& file);
  // The file holds this content, and serves nothing yet.
  [[nodiscard]] Result<void> meet(const std::filesystem::path& file, const std::string& sha256);
  // The content has failed its trial process.
  [[nodiscard]] Result<void> refuse(const std::string& sha256, const std::string& rule,
                                    const std::string& reason);
  // Content may be tried again, whatever was wrong with it.
  [[nodiscard]] Result<void> allow(const std::string& sha256);

  // What happens to the settings of a class. A failure: this holds as long as this process runs.
  Result<void> note(const SettingsEvent& event);

  // The version to go back to, as if the file held it.
  //   Failure   kNotFound: none is kept. kInternal: its bytes are not what they were, or cannot be
  //             read.
  [[nodiscard]] Result<Candidate> go_back(const std::filesystem::path& file, const Clock& clock,
                                          uid_t user) const;

 private:
  enum class Unwritten { kUndone, kHoldsAnyway };
  // `kept`: a version whose bytes a new place may name.
  [[nodiscard]] Result<void> change(const VersionEvent& event, Unwritten unwritten,
                                    const Version* kept = nullptr);
  [[nodiscard]] Result<void> write(const VersionFacts& after, const Version* kept);
  [[nodiscard]] Result<void> check_place(const std::filesystem::path& file) const;
  [[nodiscard]] Result<void> keep_bytes(const Version& version) const;
  void open_bytes();
  void read();
  void tidy(const VersionFacts& after) const;

  const std::filesystem::path data_;
  const std::string host_;
  std::vector<Error> problems_;
  std::optional<Error> no_bytes_;                 // why no bytes can be kept
  Mutex changing_;                                // taken first, and held while the file is written
  bool is_behind_ GUARDED_BY(changing_) = false;  // the file lacks a change
  mutable Mutex mutex_;  // never held while anything waits: event loops take it
  VersionFacts facts_ GUARDED_BY(mutex_);
};

}  // namespace hearth::plugins
