#pragma once
// The records of crashes in a data directory: the one that the server before has left, and some
// older ones.

#include "base/error.hpp"
#include "diagnosis/crash_record.hpp"

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace hearth::diagnosis {

// <data>/crashes/
//   pending          what a server that runs would write into; empty as long as it lives, gone when
//                    it has stopped cleanly
//   <unix ms>.crash  what earlier ones have written
//
// Bounded   The last kKept records, each at most kMaxCrashFile.
// Threads   One; and one server at a time, which the lock on the data directory sees to.
class CrashHistory {
 public:
  static constexpr std::size_t kKept = 20;

  explicit CrashHistory(const std::filesystem::path& data) : directory_(data / "crashes") {}

  [[nodiscard]] std::filesystem::path pending() const { return directory_ / "pending"; }

  // Makes the directory, moves what the server before has left among the older ones, with the names
  // of the functions on its stack, and returns it. Comes before the private copies of its libraries
  // are removed: those have the names. Absent: it has not crashed, or had no time to say why
  // (SIGKILL, a loss of power).
  //   Failure  kUnavailable, kForbidden: the directory cannot be made or written; the message is
  //            for the operator. A file that is no record counts as none.
  [[nodiscard]] Result<std::optional<CrashRecord>> take_pending();

  // Makes the directory unless it is there. kUnavailable as above.
  [[nodiscard]] Result<void> make_directory() const;

  // Newest first. Files that cannot be read are left out.
  [[nodiscard]] std::vector<CrashRecord> all() const;

 private:
  void name_stack(const std::string& text, CrashRecord& record) const;
  [[nodiscard]] std::vector<std::filesystem::path> files() const;  // oldest first
  void forget_old();

  std::filesystem::path directory_;
};

}  // namespace hearth::diagnosis
