#include "base/files.hpp"

#include "support/temp_directory.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace hearth {
namespace {

namespace fs = std::filesystem;

class FilesTest : public ::testing::Test {
 protected:
  [[nodiscard]] fs::path path(std::string_view name) const { return directory_.path() / name; }
  [[nodiscard]] std::size_t entries() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(directory_.path()), fs::directory_iterator()));
  }
  void put(std::string_view name, std::string_view content) const {
    std::ofstream(path(name), std::ios::binary) << content;
  }

  testing::TempDirectory directory_;
};

TEST_F(FilesTest, ReadsBackWhatWasWritten) {
  std::string content = "line\nwith a NUL";
  content += '\0';
  content += std::string(200'000, 'x');  // more than one step of the reader
  ASSERT_TRUE(write_file_atomically(path("a"), content));
  EXPECT_EQ(read_file(path("a"), 1 << 20).value(), content);
}

TEST_F(FilesTest, ReadsAnEmptyFile) {
  put("empty", "");
  EXPECT_EQ(read_file(path("empty"), 10).value(), "");
}

TEST_F(FilesTest, TheBoundIsInclusive) {
  put("ten", "0123456789");
  EXPECT_EQ(read_file(path("ten"), 10).value(), "0123456789");
  const auto refused = read_file(path("ten"), 9);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::kLimitExceeded);
  EXPECT_EQ(refused.error().message,
            "cannot read " + path("ten").string() + ": it is longer than 9 bytes");
}

TEST_F(FilesTest, ReadsFilesWhoseSizeTheSystemGivesAsZero) {
  EXPECT_NE(read_file("/proc/self/status", 1 << 20).value(), "");
}

TEST_F(FilesTest, SaysThatThereIsNoSuchFile) {
  const auto refused = read_file(path("absent"), 10);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::kNotFound);
  EXPECT_EQ(refused.error().message,
            "cannot open " + path("absent").string() + ": No such file or directory");
}

TEST_F(FilesTest, RefusesDirectoriesAndPipesWithoutWaiting) {
  EXPECT_EQ(read_file(directory_.path(), 10).error().code, Errc::kInvalidArgument);
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  EXPECT_EQ(read_file(path("pipe"), 10).error().code, Errc::kInvalidArgument);
}

TEST_F(FilesTest, ReplacesAFileAndLeavesNoTemporaryOne) {
  put("a", "old and longer");
  ASSERT_TRUE(write_file_atomically(path("a"), "new"));
  EXPECT_EQ(read_file(path("a"), 100).value(), "new");
  EXPECT_EQ(entries(), 1U);
}

TEST_F(FilesTest, ReplacesALinkInsteadOfFollowingIt) {
  put("target", "untouched");
  fs::create_symlink(path("target"), path("link"));
  ASSERT_TRUE(write_file_atomically(path("link"), "new"));
  EXPECT_EQ(read_file(path("target"), 100).value(), "untouched");
  EXPECT_FALSE(fs::is_symlink(path("link")));
}

TEST_F(FilesTest, SetsTheModeWhateverTheUmask) {
  const mode_t before = ::umask(0077);
  const auto written = write_file_atomically(path("a"), "x", fs::perms{0640});
  ::umask(before);
  ASSERT_TRUE(written);
  EXPECT_EQ(fs::status(path("a")).permissions(), fs::perms{0640});
}

TEST_F(FilesTest, AFailedWriteLeavesNothingBehind) {
  fs::create_directory(path("taken"));  // a rename onto a directory fails
  const auto refused = write_file_atomically(path("taken"), "x");
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("cannot write " + path("taken").string()),
            std::string::npos);
  EXPECT_EQ(entries(), 1U);
}

TEST_F(FilesTest, OnlyWhatAKilledWriterHasLeftIsRemoved) {
  for (const char* name : {"a.yaml", "a.yaml.unfinished-x1Y2z3", "a.yaml.unfinished-", "b.x1Y2z3"})
    put(name, "x");
  remove_unfinished(path(""));
  EXPECT_TRUE(fs::exists(path("a.yaml")));
  EXPECT_FALSE(fs::exists(path("a.yaml.unfinished-x1Y2z3")));
  EXPECT_EQ(entries(), 3U);
  remove_unfinished(path("no/such"));
}

TEST_F(FilesTest, SaysThatTheDirectoryIsMissing) {
  EXPECT_EQ(write_file_atomically(path("no/such"), "x").error().code, Errc::kNotFound);
}

TEST_F(FilesTest, ALinkThatLeadsNowhereIsAnEntry) {
  EXPECT_FALSE(is_there(path("a")));
  fs::create_symlink("nowhere", path("a"));
  EXPECT_TRUE(is_there(path("a")));
}

}  // namespace
}  // namespace hearth
