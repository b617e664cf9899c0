#pragma once
// The system calls that make written bytes survive a loss of power. Tests put calls that wait, fail
// or lie in their place.

#include "base/error.hpp"

#include <filesystem>
#include <memory>

namespace hearth::storage {

// A file that is open for nothing but to be synced.
//
// Linux tells each open descriptor of a file once that written bytes could not be brought to the
// device. So whoever must not miss that opens the file before it is written, keeps it open, and
// after one error never believes it again.
//
// Threads    One at a time.
class SyncedFile {
 public:
  SyncedFile() = default;
  virtual ~SyncedFile() = default;
  SyncedFile(const SyncedFile&) = delete;
  SyncedFile& operator=(const SyncedFile&) = delete;

  // Returns when everything written to the file before is on the device, and its length. 0, or the
  // system's error.
  [[nodiscard]] virtual int sync_data() = 0;

  // Whether SyncCalls::sync_everything() covers this file.
  [[nodiscard]] virtual bool covered_by_sync_everything() const = 0;
};

// Threads    All: one thread syncs while others open.
class SyncCalls {
 public:
  SyncCalls() = default;
  virtual ~SyncCalls() = default;
  SyncCalls(const SyncCalls&) = delete;
  SyncCalls& operator=(const SyncCalls&) = delete;

  // Makes the file, empty, if it is not there. It must carry no locks: closing any descriptor of a
  // file drops all locks that the process has on it. A WAL carries none; a database does.
  // Throws StorageError.
  [[nodiscard]] virtual std::unique_ptr<SyncedFile> open(const std::filesystem::path& path) = 0;

  // For a database's file, which may carry locks; makes it, empty, if it is not there. Its sync
  // covers the first page only, and holds no descriptor. Before SQLite opens the file, since this
  // opens and closes it. Throws StorageError.
  [[nodiscard]] virtual std::unique_ptr<SyncedFile> open_first_page(
      const std::filesystem::path& path) = 0;

  // Returns when the names in the directory are on the device: files made there are found, removed
  // ones stay away. 0, or the system's error.
  [[nodiscard]] virtual int sync_directory(const std::filesystem::path& path) = 0;

  // Does all of that at once for every file and directory of one file system, other programs' too.
  // 0, or the error; each error is told once, whichever file it was about.
  [[nodiscard]] virtual int sync_everything() = 0;
};

// The system's own.
class SystemSyncCalls final : public SyncCalls {
 public:
  // sync_everything() is for the file system that holds `root`. Where its answer means nothing
  // (kernels before 5.8 do not report errors there, and network and user-space file systems may do
  // nothing) it covers no file.
  explicit SystemSyncCalls(const std::filesystem::path& root);
  ~SystemSyncCalls() override;

  [[nodiscard]] std::unique_ptr<SyncedFile> open(const std::filesystem::path& path) override;
  [[nodiscard]] std::unique_ptr<SyncedFile> open_first_page(
      const std::filesystem::path& path) override;
  [[nodiscard]] int sync_directory(const std::filesystem::path& path) override;
  [[nodiscard]] int sync_everything() override;

 private:
  [[nodiscard]] bool covers(int fd) const;

  // Open from the beginning, so that no error is missed; -1 where syncing everything is no use.
  int root_ = -1;
  unsigned long device_ = 0;
};

}  // namespace hearth::storage
