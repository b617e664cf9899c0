#pragma once
// The system calls that make written bytes survive a loss of power. Tests replace them with calls
// that wait, fail or lie.

#include "base/error.hpp"

#include <filesystem>
#include <memory>

namespace hearth::storage {

// A file that is open only to be synced.
//
// Linux reports a failed write to the device once to each open descriptor of the file. To see every
// failure, open the file before it is written, keep it open, and treat one error as final.
//
// Threads    One at a time.
class SyncedFile {
 public:
  SyncedFile() = default;
  virtual ~SyncedFile() = default;
  SyncedFile(const SyncedFile&) = delete;
  SyncedFile& operator=(const SyncedFile&) = delete;

  // Returns when all earlier writes to the file, and its length, are on the device. 0, or the
  // errno.
  [[nodiscard]] virtual int sync_data() = 0;

  // Whether SyncCalls::sync_everything() covers this file.
  [[nodiscard]] virtual bool covered_by_sync_everything() const = 0;
};

// Threads    All: one thread may sync while others open files.
class SyncCalls {
 public:
  SyncCalls() = default;
  virtual ~SyncCalls() = default;
  SyncCalls(const SyncCalls&) = delete;
  SyncCalls& operator=(const SyncCalls&) = delete;

  // Makes the file, empty, if it does not exist. The process must have no locks on the file,
  // because closing any descriptor of a file drops them all. A WAL has no locks; a database has.
  // Throws StorageError.
  [[nodiscard]] virtual std::unique_ptr<SyncedFile> open(const std::filesystem::path& path) = 0;

  // For a database's file, which may have locks; makes it, empty, if it does not exist. Its sync
  // covers only the first page, and the object keeps no descriptor. Call it before SQLite opens the
  // file, because it opens and closes the file. Throws StorageError.
  [[nodiscard]] virtual std::unique_ptr<SyncedFile> open_first_page(
      const std::filesystem::path& path) = 0;

  // Returns when the names in the directory are on the device: both new files and removals survive.
  // 0, or the errno.
  [[nodiscard]] virtual int sync_directory(const std::filesystem::path& path) = 0;

  // Does all of that at once for every file and directory of one file system, also of other
  // programs. 0, or the errno. The system reports each error once, and not the file.
  [[nodiscard]] virtual int sync_everything() = 0;
};

// The system's own.
class SystemSyncCalls final : public SyncCalls {
 public:
  // sync_everything() is for the file system that holds `root`. It covers no file where its result
  // is not reliable: kernels before 5.8 do not report errors, and network and user-space file
  // systems may do nothing.
  explicit SystemSyncCalls(const std::filesystem::path& root);
  ~SystemSyncCalls() override;

  [[nodiscard]] std::unique_ptr<SyncedFile> open(const std::filesystem::path& path) override;
  [[nodiscard]] std::unique_ptr<SyncedFile> open_first_page(
      const std::filesystem::path& path) override;
  [[nodiscard]] int sync_directory(const std::filesystem::path& path) override;
  [[nodiscard]] int sync_everything() override;

 private:
  [[nodiscard]] bool covers(int fd) const;

  // Open from the beginning, so that no error is missed; -1 if sync_everything() covers no file.
  int root_ = -1;
  unsigned long device_ = 0;
};

}  // namespace hearth::storage
