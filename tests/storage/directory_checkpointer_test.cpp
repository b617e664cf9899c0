#include "storage/directory_checkpointer.hpp"

#include "storage/directory.hpp"
#include "support/temp_directory.hpp"

#include <sqlite3.h>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace hearth::storage {
namespace {

using std::chrono::milliseconds;

// A VFS that tells of each sync before it is made, and may make it fail. One at a time exists.
class WatchedSyncs {
 public:
  using Watch = std::function<int(bool is_database)>;  // what the sync ends with

  explicit WatchedSyncs(Watch watch) : watch_(std::move(watch)), real_(system_vfs()), vfs_(*real_) {
    vfs_.zName = kName;
    vfs_.pAppData = this;
    vfs_.xOpen = open;
    sqlite3_vfs_register(&vfs_, 0);
    current = this;
  }
  ~WatchedSyncs() {
    sqlite3_vfs_unregister(&vfs_);
    current = nullptr;
  }
  WatchedSyncs(const WatchedSyncs&) = delete;
  WatchedSyncs& operator=(const WatchedSyncs&) = delete;

  static constexpr const char* kName = "watched-syncs";

 private:
  static sqlite3_vfs* system_vfs() {
    initialize_sqlite();
    return sqlite3_vfs_find(nullptr);
  }
  static int open(sqlite3_vfs* vfs, sqlite3_filename name, sqlite3_file* file, int flags,
                  int* out) {
    auto& self = *static_cast<WatchedSyncs*>(vfs->pAppData);
    const int rc = self.real_->xOpen(self.real_, name, file, flags, out);
    if (rc != SQLITE_OK || file->pMethods == nullptr) return rc;
    const bool is_database = (flags & SQLITE_OPEN_MAIN_DB) != 0;
    const std::scoped_lock lock(self.mutex_);
    sqlite3_io_methods& methods = is_database ? self.of_database_ : self.of_others_;
    if (methods.iVersion == 0) {
      methods = *file->pMethods;
      self.real_sync_ = methods.xSync;
      methods.xSync = is_database ? sync<true> : sync<false>;
    }
    file->pMethods = &methods;
    return rc;
  }
  template <bool kIsDatabase>
  static int sync(sqlite3_file* file, int flags) {
    const int rc = current->watch_(kIsDatabase);
    return rc == SQLITE_OK ? current->real_sync_(file, flags) : rc;
  }

  inline static WatchedSyncs* current = nullptr;  // SQLite gives xSync nothing of ours
  const Watch watch_;
  sqlite3_vfs* const real_;
  sqlite3_vfs vfs_;
  std::mutex mutex_;
  sqlite3_io_methods of_database_{};
  sqlite3_io_methods of_others_{};
  int (*real_sync_)(sqlite3_file*, int) = nullptr;
};

class DirectoryCheckpointerTest : public ::testing::Test {
 protected:
  // Agents that fill about so many pages of the WAL.
  void fill(Directory& directory, int pages) {
    for (const int end = agents_ + pages / 2; agents_ < end; ++agents_)
      directory.record({"Class", "agent-" + std::to_string(agents_)}, 1);
  }
  template <typename Condition>
  static bool eventually(Condition condition) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!condition()) {
      if (std::chrono::steady_clock::now() > until) return false;
      std::this_thread::yield();
    }
    return true;
  }
  [[nodiscard]] std::uintmax_t wal_bytes() const {
    return std::filesystem::file_size(path_.native() + "-wal");
  }

  const testing::TempDirectory temp_;
  const std::filesystem::path path_ = temp_.path() / "host.db";
  int agents_ = 0;
};

void no_failure(const std::string& failure) {
  ADD_FAILURE() << failure;
}

TEST_F(DirectoryCheckpointerTest, P1_WhoCommitsNeverSyncsTheFile) {
  const auto writer = std::this_thread::get_id();
  std::atomic<int> by_writer = 0;
  std::atomic<int> by_others = 0;
  const WatchedSyncs syncs([&](bool is_database) {
    if (is_database) ++(std::this_thread::get_id() == writer ? by_writer : by_others);
    return SQLITE_OK;
  });
  Directory directory(path_, WatchedSyncs::kName);
  DirectoryCheckpointer checkpointer(path_, no_failure, WatchedSyncs::kName);
  directory.leave_wal_to(checkpointer);
  by_writer = 0;  // what making the file took
  for (int time = 1; time <= 3; ++time) {
    fill(directory, 2 * DirectoryCheckpointer::kPages);
    // SQLite syncs the file when all is in it: nobody has written since.
    ASSERT_TRUE(eventually([&] { return by_others >= time; }));
  }
  EXPECT_EQ(by_writer, 0);
}

TEST_F(DirectoryCheckpointerTest, P1_CommitsGoOnWhileTheDeviceIsWaitedFor) {
  std::atomic<bool> may_end = false;
  std::atomic<bool> has_begun = false;
  const WatchedSyncs syncs([&, writer = std::this_thread::get_id()](bool is_database) {
    if (is_database && std::this_thread::get_id() != writer) {
      has_begun = true;
      eventually([&] { return may_end.load(); });
    }
    return SQLITE_OK;
  });
  Directory directory(path_, WatchedSyncs::kName);
  DirectoryCheckpointer checkpointer(path_, no_failure, WatchedSyncs::kName);
  directory.leave_wal_to(checkpointer);
  fill(directory, 2 * DirectoryCheckpointer::kPages);
  ASSERT_TRUE(eventually([&] { return has_begun.load(); }));
  EXPECT_TRUE(directory.record({"Class", "meanwhile"}, 1));
  EXPECT_TRUE(Directory(path_).contains({"Class", "meanwhile"}));
  may_end = true;
}

// How far it goes beyond the limit is the machine's affair, since others write while it is moved: here at most five times as far, of twenty.
TEST_F(DirectoryCheckpointerTest, P2_TheWalStaysBoundedWhileSomebodyWritesAllTheTime) {
  Directory directory(path_);
  DirectoryCheckpointer checkpointer(path_, no_failure);
  directory.leave_wal_to(checkpointer);
  fill(directory, 20 * DirectoryCheckpointer::kLongPages);
  EXPECT_LT(wal_bytes(), std::uintmax_t{6} * DirectoryCheckpointer::kLongPages * 4096);
}

TEST_F(DirectoryCheckpointerTest, P3_AfterAFailedSyncNothingIsLostAndNothingIsMovedAnyMore) {
  std::atomic<bool> fails = false;
  std::atomic<int> syncs_of_file = 0;
  std::atomic<int> failures = 0;
  {
    const WatchedSyncs syncs([&](bool is_database) {
      if (!fails) return SQLITE_OK;
      syncs_of_file += is_database ? 1 : 0;
      return is_database ? SQLITE_IOERR_FSYNC : SQLITE_OK;
    });
    Directory directory(path_, WatchedSyncs::kName);
    DirectoryCheckpointer checkpointer(
        path_, [&](const std::string&) { ++failures; }, WatchedSyncs::kName);
    directory.leave_wal_to(checkpointer);
    fails = true;
    fill(directory, 2 * DirectoryCheckpointer::kPages);
    ASSERT_TRUE(eventually([&] { return failures == 1; }));
    fill(directory, 2 * DirectoryCheckpointer::kPages);
    EXPECT_EQ(failures, 1);
    EXPECT_EQ(syncs_of_file, 1);
    fails = false;
  }
  EXPECT_EQ(Directory(path_).count(), agents_);
}

TEST_F(DirectoryCheckpointerTest, P3_AfterAnotherFailureItTriesAgain) {
  std::atomic<bool> fails = false;
  std::atomic<int> failures = 0;
  std::atomic<int> synced = 0;
  const WatchedSyncs syncs([&](bool is_database) {
    if (is_database && fails) return SQLITE_FULL;
    synced += is_database ? 1 : 0;
    return SQLITE_OK;
  });
  Directory directory(path_, WatchedSyncs::kName);
  DirectoryCheckpointer checkpointer(
      path_, [&](const std::string&) { ++failures; }, WatchedSyncs::kName);
  directory.leave_wal_to(checkpointer);
  fails = true;
  fill(directory, 2 * DirectoryCheckpointer::kPages);
  ASSERT_TRUE(eventually([&] { return failures > 0; }));
  fails = false;
  const int before = synced;
  fill(directory, 2 * DirectoryCheckpointer::kPages);
  EXPECT_TRUE(eventually([&] { return synced > before; }));
}

}  // namespace
}  // namespace hearth::storage
