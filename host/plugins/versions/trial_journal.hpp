#pragma once
// Which versions of libraries are on trial, on disk: one that ends the process must not be what the next process serves.

#include "base/clock.hpp"
#include "base/error.hpp"
#include "plugins/admission/candidate.hpp"

#include <sys/types.h>

#include <cstddef>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::plugins {

// Within a server's data directory.
inline constexpr const char* kTrialsDirectory = "trials";

// A library, told by its file, of which more than one version counts.
struct Trial {
  // What the file holds and nobody is served by.
  struct NotServed {
    std::string sha256;  // empty: nothing that can be read, or the file is gone
    std::string reason;  // a sentence's end, for an operator
    bool may_retry =
        false;  // at the next start: it never ran, and what was wrong may be mended (its check, room in memory)
  };
  std::filesystem::path file;  // with the links in its directory resolved, however it was spelled
  std::string proven;          // the hash of the version to go back to, whose bytes are kept
  std::string
      on_trial;  // the hash of the one that runs and is not proven yet; empty: the proven one runs
  std::optional<NotServed> not_served;  // absent: what the file holds is what runs
  std::vector<NotServed>
      condemned;  // what may not be tried again, as long as there is a trial; the last kMaxCondemned
};

// <data>/trials/trials.json    the list of Trials
// <data>/trials/<sha256>.so    the bytes of a proven version
//
//   what happens                       on_trial                       not_served         proven
//   begin    a file has changed        the new version                none               what was served; as before, if that is on trial itself
//   condemn  it cannot be served       what goes on, unless proven    it                 as before
//   keep     the file is gone, or      as before                      nothing, unless    what was served; as before, if that is on trial itself
//            cannot be read                                           something is known
//   prove    it ran long enough        none                           as before          it; without not_served the trial goes
//   settle   the file is what runs     as before                      none               as before; with nobody on trial the trial goes
//   blame    it has ended a process    none                           it, unless known   as before
//   meet     nobody serves the file:   what the file holds, unless    none, or as        as before; if the file holds just that, the trial goes
//            a start, or it is back    it is condemned                before
//
// Promises
//  P1 Before    What begin() has said is in the file system when it returns: the code may run after it, whatever that does.
//  P2 Whole     trials.json is replaced: after a crash, or a loss of power, it is the list before a change or the one after it. A change that
//               cannot be written has not happened, but for blame(). The bytes that it names are on the disk before it.
//  P3 Verified  proven() gives bytes with the hash that was noted, or none.
//  P4 Tidy      Bytes that no trial names go with the next change.
//
// Bounded    kMaxTrials; of files that are gone the last kMaxGone; kMaxCondemned of each.
// Threads    One at a time. Requires the lock on the data directory.
// Failure    What the system says (kUnavailable, kForbidden, kInternal), with the path. Each change is a write and a sync.
class TrialJournal {
 public:
  static constexpr std::size_t kMaxTrials = 1024;
  static constexpr std::size_t kMaxGone = 32;
  static constexpr std::size_t kMaxCondemned = 8;

  // Reads the list of `directory` (mode 0700, made if it is not there, if need be with the first trial; its parent is). Trials without their bytes are left out.
  //   Failure   Also kInvalidArgument: trials.json is not what this class writes. Remove it, or the directory, to begin anew.
  [[nodiscard]] static Result<TrialJournal> open(const std::filesystem::path& directory);

  // A version, and the copy of it that was loaded.
  struct Version {
    std::string sha256;
    std::filesystem::path copy;
  };

  // `served` goes on until the content `next` of the file is proven. With `next` proven already there is nothing to try.
  //   Failure   Also kLimitExceeded; kInvalidArgument: the file's name is not UTF-8.
  [[nodiscard]] Result<void> begin(const std::filesystem::path& file, const std::string& next,
                                   const Version& served);

  // What begin() or meet() has put on trial is not served: `goes_on` is, by its hash.
  [[nodiscard]] Result<void> condemn(const std::filesystem::path& file, const std::string& goes_on,
                                     Trial::NotServed what);

  // Only if it is on trial.
  [[nodiscard]] Result<void> prove(const std::filesystem::path& file, const Version& version);

  [[nodiscard]] Result<void> keep(const std::filesystem::path& file, const Version& served,
                                  std::string reason);

  [[nodiscard]] Result<void> settle(const std::filesystem::path& file);

  // The process before was ended by content with this hash. True: it was on trial, and is not served any more. If that cannot be
  // written it holds for this process, and is written with the next change.
  [[nodiscard]] Result<bool> blame(const std::string& sha256, const std::string& reason);

  // Content with this hash may be tried again, at the next start or before, whatever it has done.
  [[nodiscard]] Result<void> allow(const std::string& sha256);

  enum class Standing {
    kUnknown,    // there is nothing to go back to, or just this: serve it
    kOnTrial,    // it may be tried
    kCondemned,  // it must not be: see find()->not_served
  };
  // What is to be done with the content of a file that nobody is served by.
  [[nodiscard]] Result<Standing> meet(const std::filesystem::path& file, const std::string& sha256);

  // The version to go back to, as if the file held it.
  //   Failure   kNotFound: the file has no trial. kInternal: its bytes are not what they were, or cannot be read.
  [[nodiscard]] Result<Candidate> proven(const std::filesystem::path& file, const Clock& clock,
                                         uid_t user) const;

  // Null: it has none. Valid until the next change.
  [[nodiscard]] const Trial* find(const std::filesystem::path& file) const;

  // Why content with this hash may not be tried in this place. Null: it may. Valid until the next change.
  [[nodiscard]] const Trial::NotServed* find_condemned(const std::filesystem::path& file,
                                                       std::string_view sha256) const;

  [[nodiscard]] const std::vector<Trial>& all() const { return trials_; }

 private:
  explicit TrialJournal(std::filesystem::path directory) : directory_(std::move(directory)) {}

  [[nodiscard]] std::filesystem::path bytes_of(std::string_view sha256) const;
  [[nodiscard]] Result<void> keep_bytes(const Version& version) const;
  // The trial that `served` goes on in, without which there is none yet; its bytes are kept.
  [[nodiscard]] Result<Trial> trial_of(const std::filesystem::path& file, const Version& served);
  [[nodiscard]] Result<void> replace(std::vector<Trial> trials);
  // As replace(), with the trial of the file as `change` leaves it; absent: it goes. Nothing happens without one.
  [[nodiscard]] Result<void> change(const std::filesystem::path& file,
                                    const std::function<void(std::optional<Trial>&)>& change);

  std::filesystem::path directory_;
  std::vector<Trial> trials_;
};

}  // namespace hearth::plugins
