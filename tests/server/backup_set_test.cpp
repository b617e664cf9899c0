#include "server/backup_set.hpp"

#include "support/temp_directory.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace hearth::server {
namespace {

TEST(BackupSetTest, TheNewestIsOneWithANameThatTheServerGives) {
  const hearth::testing::TempDirectory directory;
  const auto add = [&](const std::string& name) {
    std::filesystem::create_directory(directory.path() / name);
    std::ofstream{directory.path() / name / kManifestFile} << "-";
  };
  for (const char* const other :
       {"damaged-20261130T030000Z", "20261130T030000Z-old", "20261130T030000Z.old", ".unfinished",
        "20261130T030000Z-", "2026"})
    add(other);
  EXPECT_FALSE(find_backup(directory.path()));
  EXPECT_EQ(find_backup(directory.path() / "2026").value(), directory.path() / "2026");
  for (const char* const newest : {"20261128T030000Z", "20261129T030000Z", "20261129T030000Z-2",
                                   "20261129T030000Z-10", "20261129T030001Z"}) {
    add(newest);
    EXPECT_EQ(find_backup(directory.path()).value().filename(), newest);
  }
}

}  // namespace
}  // namespace hearth::server
