#include "storage/sync_calls.hpp"

#include "support/temp_directory.hpp"

#include <sys/stat.h>

#include <gtest/gtest.h>

#include <cerrno>
#include <fstream>

namespace hearth::storage {
namespace {

class SyncCallsTest : public ::testing::Test {
 protected:
  const testing::TempDirectory temp_;
  SystemSyncCalls calls_{temp_.path()};
};

TEST_F(SyncCallsTest, AFileIsSyncedThroughADescriptorOfItsOwn) {
  std::ofstream out(temp_.path() / "a-wal");
  const auto file = calls_.open(temp_.path() / "a-wal");
  out << "bytes" << std::flush;
  EXPECT_EQ(file->sync_data(), 0);
}

TEST_F(SyncCallsTest, OpeningWhatIsNotThereIsAnError) {
  try {
    (void)calls_.open(temp_.path() / "missing-wal");
    FAIL() << "opened";
  } catch (const StorageError& error) {
    EXPECT_NE(std::string(error.what()).find("missing-wal for syncing: No such file"),
              std::string::npos)
        << error.what();
  }
}

TEST_F(SyncCallsTest, DirectoriesAreSyncedAndErrorsTold) {
  EXPECT_EQ(calls_.sync_directory(temp_.path()), 0);
  EXPECT_EQ(calls_.sync_directory(temp_.path() / "missing"), ENOENT);
  std::ofstream(temp_.path() / "file") << "x";
  EXPECT_EQ(calls_.sync_directory(temp_.path() / "file"), ENOTDIR);
}

TEST_F(SyncCallsTest, OnlyFilesOfTheRootsFileSystemAreCovered) {
  std::ofstream(temp_.path() / "a-wal") << "x";
  const bool covers = calls_.open(temp_.path() / "a-wal")->covered_by_sync_everything();
  EXPECT_EQ(calls_.sync_everything(), covers ? 0 : ENOSYS);
  struct stat here{};
  struct stat memory{};
  const char* const elsewhere = "/proc/self/status";
  ASSERT_EQ(::stat(temp_.path().c_str(), &here), 0);
  ASSERT_EQ(::stat(elsewhere, &memory), 0);
  ASSERT_NE(here.st_dev, memory.st_dev);
  EXPECT_FALSE(calls_.open(elsewhere)->covered_by_sync_everything());
}

TEST_F(SyncCallsTest, WithoutARootNothingIsCovered) {
  SystemSyncCalls nowhere(temp_.path() / "missing");
  std::ofstream(temp_.path() / "a-wal") << "x";
  EXPECT_FALSE(nowhere.open(temp_.path() / "a-wal")->covered_by_sync_everything());
  EXPECT_EQ(nowhere.sync_everything(), ENOSYS);
}

}  // namespace
}  // namespace hearth::storage
