#include "storage/directory_checkpointer.hpp"

#include "storage/directory.hpp"
#include "support/temp_directory.hpp"
#include "support/watched_syncs.hpp"

#include <sqlite3.h>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

namespace hearth::storage {
namespace {

using hearth::testing::WatchedSyncs;
using std::chrono::milliseconds;

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

TEST_F(DirectoryCheckpointerTest, P1_WhoCommitsNeverSyncs) {
  const auto writer = std::this_thread::get_id();
  std::atomic<int> by_writer = 0;
  std::atomic<int> by_others = 0;
  const WatchedSyncs syncs([&](bool is_database) {
    if (std::this_thread::get_id() == writer) {
      ++by_writer;
    } else if (is_database) {
      ++by_others;
    }
    return SQLITE_OK;
  });
  Directory directory(path_, WatchedSyncs::kName);
  DirectoryCheckpointer checkpointer(path_, no_failure, WatchedSyncs::kName);
  directory.leave_wal_to(checkpointer);
  by_writer = 0;  // what making the file took
  for (int time = 1; time <= 3; ++time) {
    fill(directory, 2 * DirectoryCheckpointer::kPages);
    // SQLite syncs the file when all is in it: no other write has come since.
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

// How far the WAL grows beyond the limit depends on the machine, since others write while it is
// moved. This test writes twenty times the limit, and the WAL must stay below six times.
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
