#pragma once
// The crash records in a data directory: the record of the last server process, and some older
// ones.

#include "base/error.hpp"
#include "diagnosis/crash_record.hpp"

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace hearth::diagnosis {

// <data>/crashes/
//   pending          the running server writes here when it crashes; empty until then; removed
//                    when the server stops cleanly
//   <unix ms>.crash  records of earlier servers; one that the clock dates before an older record
//                    has the next free number
//
// Bounded   The last kKept records, each at most kMaxCrashFile.
// Threads   One. The lock on the data directory keeps other servers out.
class CrashHistory {
 public:
  static constexpr std::size_t kKept = 20;

  explicit CrashHistory(const std::filesystem::path& data) : directory_(data / "crashes") {}

  [[nodiscard]] std::filesystem::path pending() const { return directory_ / "pending"; }

  // Makes the directory. Names the functions on the stack of the pending record, moves the record
  // to the older ones, and returns it. Call it before the private copies of the last server's
  // libraries are removed: they hold the names. Absent: the last server has not crashed, or it left
  // no record (SIGKILL, a loss of power).
  //   Failure  kUnavailable, kForbidden: the directory cannot be made or written; the message is
  //            for the operator. A file that is no record is ignored.
  [[nodiscard]] Result<std::optional<CrashRecord>> take_pending();

  // Makes the directory if it is absent. kUnavailable as above.
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
