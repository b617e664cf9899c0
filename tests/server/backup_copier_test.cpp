// What an agent does to its files while they are copied. The rest: tests/process/backup_test.cpp.
#include "server/backup_copier.hpp"

#include "base/error.hpp"
#include "storage/copy_mark.hpp"
#include "support/temp_directory.hpp"

#include <sys/stat.h>

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

namespace hearth::server {
namespace {

namespace fs = std::filesystem;

// The next open of an agent removes an empty WAL; what an agent has never written to is removed at
// its close, and the files of an operation at its end.
TEST(BackupCopierTest, FilesThatGoWhileTheyAreCopiedFailNoBackup) {
  constexpr int kBackups = 300;
  const hearth::testing::TempDirectory directory;
  const auto data = storage::DataDirectory::open(directory.path() / "data").value();
  const storage::AgentKey key{"Counter", "a"};
  const fs::path file = data.agent_path(key);
  const fs::path files = fs::path(file).replace_extension(".files");
  fs::create_directories(file.parent_path());
  std::ofstream{file} << "database";
  std::atomic<bool> is_over = false;
  // Without a descriptor: the copier has a table of its own, whose numbers ThreadSanitizer takes
  // for those of this thread.
  const auto make_empty = [](const fs::path& path) { ::mknod(path.c_str(), S_IFREG | 0600U, 0); };
  std::thread agent([&] {
    while (!is_over) {
      make_empty(file.native() + "-wal");
      fs::create_directory(files);
      make_empty(files / "operation");
      fs::remove(file.native() + "-wal");
      fs::remove(files / "operation");
      fs::remove(files);
    }
  });
  std::string failure;
  const fs::path to = directory.path() / "backup";
  for (int i = 0; i < kBackups && failure.empty(); ++i) {
    fs::create_directories(to / kRawCopies);
    data.copy_mark().set();
    data.copy_mark().wait_for({key});
    BackupProgress progress;
    BackupCopier copier(data, to, {}, 1U << 30U, progress);
    std::thread([&] {
      try {
        copier.run();
      } catch (const StorageError& failed) {
        failure = failed.what();
      }
    }).join();
    EXPECT_FALSE(copier.take_files().empty());
    fs::remove_all(to);
  }
  is_over = true;
  agent.join();
  EXPECT_EQ(failure, "");
}

}  // namespace
}  // namespace hearth::server
