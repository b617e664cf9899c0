#include "cli/project_build.hpp"

#include "base/files.hpp"
#include "support/temp_directory.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
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

class SourceDirectoriesTest : public ::testing::Test {
 protected:
  void make(const std::vector<std::string>& directories) const {
    for (const std::string& each : directories) fs::create_directories(project_ / each);
  }
  [[nodiscard]] std::vector<std::string> found(const std::string& data = "data") const {
    std::vector<std::string> names;
    for (const fs::path& each : source_directories(project_, project_ / data))
      names.push_back(each.lexically_relative(project_).string());
    std::ranges::sort(names);
    return names;
  }

  const testing::TempDirectory temporary_;
  const fs::path& project_ = temporary_.path();
};

TEST_F(SourceDirectoriesTest, LeavesOutWhatIsBuiltOrInstalledOrHidden) {
  make({"src/deep", "test", "lib/build", "build/CMakeFiles", "build-release/src",
        "out/CMakeFiles/3", "data/agents", "node_modules/ws", ".git/objects"});
  std::ofstream(project_ / "build-release/CMakeCache.txt") << "";
  fs::create_directory_symlink(project_, project_ / "src/round");
  EXPECT_EQ(found(),
            (std::vector<std::string>{".", "lib", "lib/build", "out", "src", "src/deep", "test"}));
}

TEST_F(SourceDirectoriesTest, SourcesMayHaveTheNameOfWhatIsBuiltOrServed) {
  make({"builders", "build_rules", "data/tables", "src/node_modules"});
  EXPECT_EQ(found("elsewhere"),
            (std::vector<std::string>{".", "build_rules", "builders", "data", "data/tables", "src",
                                      "src/node_modules"}));
  EXPECT_EQ(found("data/tables/.."),
            (std::vector<std::string>{".", "build_rules", "builders", "src", "src/node_modules"}));
}

TEST_F(SourceDirectoriesTest, AProjectThatIsGoneHasOnlyItself) {
  EXPECT_EQ(source_directories("/no/such/project", "/no/data").size(), 1U);
}

TEST(LookAtPresetsTest, SeesThePresetsAndNoOtherJson) {
  const testing::TempDirectory temporary;
  for (const char* const each : {"CMakePresets.json", "CMakeUserPresets.json", "package.json"})
    std::ofstream(temporary.path() / each) << "{}";
  const auto found = look_at_presets(temporary.path());
  EXPECT_EQ(found.size(), 2U);
  EXPECT_FALSE(found.contains(temporary.path() / "package.json"));
}

class BringOverTest : public ::testing::Test {
 protected:
  static void put(const fs::path& path, const std::string& text) {
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  void bring() const {
    const auto brought = bring_over(built_, served_);
    ASSERT_TRUE(brought) << brought.error().message;
  }
  [[nodiscard]] std::string served(const std::string& name) const {
    const auto text = read_file(served_ / name, 100);
    return text ? *text : "nothing";
  }

  const testing::TempDirectory temporary_;
  const fs::path built_ = temporary_.path() / "plugins";
  const fs::path served_ = temporary_.path() / "served";
};

TEST_F(BringOverTest, ReplacesWhatDiffersAndRemovesWhatIsNotBuilt) {
  put(built_ / "a.so", "one");
  put(built_ / "b.so", "one");
  put(built_ / "notes.txt", "no library");
  bring();
  EXPECT_EQ(served("a.so"), "one");
  EXPECT_EQ(served("notes.txt"), "nothing");
  put(built_ / "a.so", "two");
  fs::remove(built_ / "b.so");
  bring();
  EXPECT_EQ(served("a.so"), "two");
  EXPECT_EQ(served("b.so"), "nothing");
}

TEST_F(BringOverTest, LeavesAloneWhatIsTheSame) {
  put(built_ / "a.so", "one");
  bring();
  const auto written = fs::last_write_time(served_ / "a.so");
  fs::last_write_time(built_ / "a.so", written + std::chrono::hours(1));
  bring();
  EXPECT_EQ(fs::last_write_time(served_ / "a.so"), written);
}

TEST_F(BringOverTest, SaysWhatCannotBeWritten) {
  put(built_ / "a.so", "one");
  put(served_, "a file in the place of the directory");
  const auto brought = bring_over(built_, served_);
  ASSERT_FALSE(brought);
  EXPECT_NE(brought.error().message.find("served"), std::string::npos) << brought.error().message;
}

}  // namespace
}  // namespace hearth::cli
