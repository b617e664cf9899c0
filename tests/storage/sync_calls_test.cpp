#include "storage/sync_calls.hpp"

#include "support/storage_error_of.hpp"
#include "support/temp_directory.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

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

TEST_F(SyncCallsTest, AFirstPageIsSyncedAndLeavesTheLocksOfTheFileAlone) {
  const std::filesystem::path path = temp_.path() / "a.db";
  auto page = calls_.open_first_page(path);
  EXPECT_EQ(std::filesystem::file_size(path), 0U) << "it is made";
  const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  struct flock lock{.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1, .l_pid = 0};
  ASSERT_EQ(::fcntl(file, F_SETLK, &lock), 0);
  ASSERT_EQ(::pwrite(file, "page", 4, 0), 4);
  EXPECT_EQ(page->sync_data(), 0);
  page.reset();
  const pid_t other = ::fork();
  if (other == 0) ::_exit(::fcntl(file, F_GETLK, &lock) == 0 && lock.l_type == F_WRLCK ? 0 : 1);
  int status = -1;
  ASSERT_EQ(::waitpid(other, &status, 0), other);
  EXPECT_EQ(status, 0) << "others still find it locked";
  ::close(file);
}

// Linux syncs a shared mapping, "sh". It counts a mapping that could never be written as private.
TEST_F(SyncCallsTest, AFirstPageIsMappedSoThatLinuxSyncsIt) {
  const std::filesystem::path path = temp_.path() / "a.db";
  const auto page = calls_.open_first_page(path);
  std::ifstream maps("/proc/self/smaps");
  bool is_ours = false;
  for (std::string line; std::getline(maps, line);) {
    if (line.ends_with(path.native())) is_ours = true;
    if (!is_ours || !line.starts_with("VmFlags:")) continue;
    EXPECT_NE(line.find(" sh "), std::string::npos) << line;
    return;
  }
  FAIL() << "it is not mapped";
}

TEST_F(SyncCallsTest, OpeningWhatIsNotThereIsAnError) {
  const std::string error = hearth::testing::storage_error_of(
      [&] { (void)calls_.open(temp_.path() / "missing" / "a-wal"); });
  EXPECT_NE(error.find("missing/a-wal for syncing: No such file"), std::string::npos) << error;
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
