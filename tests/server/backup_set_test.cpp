#include "server/backup_set.hpp"

#include "support/temp_directory.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <string>
#include <utility>

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

TEST(BackupSetTest, AManifestThatCannotBeReadIsNotCalledDamaged) {
  const hearth::testing::TempDirectory directory;
  const auto told = [&](const std::filesystem::path& backup) {
    const auto found = find_backup(backup);
    return found ? read_manifest(*found).error().message : found.error().message;
  };
  const auto add = [&](const std::string& name) {
    std::filesystem::create_directory(directory.path() / name);
    return directory.path() / name / kManifestFile;
  };
  std::ofstream{add("damaged")} << "-";
  std::filesystem::create_symlink(kManifestFile, add("loop"));
  std::filesystem::create_directory(add("directory"));
  std::ofstream{directory.path() / "file"} << "-";
  for (const auto& [backup, end] : std::initializer_list<std::pair<std::string, std::string>>{
           {"damaged", "/damaged/manifest is damaged"},
           {"loop", "/loop/manifest: Too many levels of symbolic links"},
           {"directory", "/directory/manifest: it is not a regular file"},
           {"file", "/file: Not a directory"},
           {"nothing", "/nothing: No such file or directory"}})
    EXPECT_TRUE(told(directory.path() / backup).ends_with(end)) << told(directory.path() / backup);
}

}  // namespace
}  // namespace hearth::server
