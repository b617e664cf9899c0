#include "cli/project_build.hpp"

#include "support/temp_directory.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace hearth::cli {
namespace {

namespace fs = std::filesystem;

TEST(RunQuietlyTest, KeepsBothStreamsInTheirOrderAndTellsTheEnd) {
  const CommandEnd end = run_quietly({"sh", "-c", "echo one; echo two >&2; pwd; exit 0"}, "/");
  EXPECT_TRUE(end.is_good);
  EXPECT_EQ(end.output, "one\ntwo\n/\n");
  EXPECT_FALSE(run_quietly({"sh", "-c", "exit 3"}, "/").is_good);
  EXPECT_FALSE(run_quietly({"sh", "-c", "kill -9 $$"}, "/").is_good);
}

TEST(RunQuietlyTest, AProgramThatIsNotThereIsNamed) {
  const CommandEnd end = run_quietly({"no-such-tool", "--version"}, "/");
  EXPECT_FALSE(end.is_good);
  EXPECT_EQ(end.output, "no-such-tool cannot be started: No such file or directory\n");
}

TEST(SourceDirectoriesTest, LeavesOutWhatIsBuiltOrInstalledOrHidden) {
  const testing::TempDirectory temporary;
  const fs::path project = temporary.path();
  for (const char* const each : {"src/deep", "test", "lib/build", "build/CMakeFiles",
                                 "build-release", "data/agents", "node_modules/ws", ".git/objects"})
    fs::create_directories(project / each);
  fs::create_directory_symlink(project, project / "src/round");
  std::vector<std::string> found;
  for (const fs::path& each : source_directories(project))
    found.push_back(each.lexically_relative(project).string());
  std::ranges::sort(found);
  EXPECT_EQ(found, (std::vector<std::string>{".", "lib", "lib/build", "src", "src/deep", "test"}));
}

TEST(SourceDirectoriesTest, AProjectThatIsGoneHasOnlyItself) {
  EXPECT_EQ(source_directories("/no/such/project").size(), 1U);
}

}  // namespace
}  // namespace hearth::cli
