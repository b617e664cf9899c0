#include "plugins/admission/staging.hpp"

#include "base/sha256.hpp"
#include "plugins/test_libraries.hpp"
#include "support/temp_directory.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>

namespace hearth::plugins {
namespace {

using namespace testing;
using hearth::testing::TempDirectory;

mode_t mode_of(const std::filesystem::path& path) {
  struct stat status{};
  EXPECT_EQ(::lstat(path.c_str(), &status), 0) << path;
  return status.st_mode & ALLPERMS;
}

class StagingTest : public ::testing::Test {
 protected:
  Result<StagedFile> stage(StagingArea& area) { return area.stage("counter", hash_, bytes_); }
  [[nodiscard]] std::filesystem::path staged() const { return directory_.path() / "staged"; }

  TempDirectory directory_;
  const Bytes bytes_ = bytes_of_text("a library");
  const std::string hash_ = sha256_hex("a library");
};

TEST_F(StagingTest, ACopyIsPrivateAndNamedForWhatItHolds) {
  auto area = StagingArea::open(staged()).value();
  EXPECT_EQ(mode_of(staged()), 0700U);
  const auto copy = stage(area);
  ASSERT_TRUE(copy) << copy.error().message;
  EXPECT_EQ(copy->path().filename(), "counter-" + hash_.substr(0, 16) + "-g1.so");
  EXPECT_TRUE(copy->path().is_absolute());
  EXPECT_EQ(copy->generation(), 1U);
  EXPECT_EQ(mode_of(copy->path()), 0500U);
  EXPECT_EQ(read_bytes(copy->path()), bytes_);
}

TEST_F(StagingTest, TheModesHoldWhateverTheUmaskIs) {
  const mode_t before = ::umask(0777);
  auto area = StagingArea::open(staged());
  const auto copy = area ? stage(*area) : Result<StagedFile>(area.error());
  ::umask(before);
  ASSERT_TRUE(copy) << copy.error().message;
  EXPECT_EQ(mode_of(staged()), 0700U);
  EXPECT_EQ(mode_of(copy->path()), 0500U);
}

TEST_F(StagingTest, NoNameIsUsedTwiceEvenForTheSameBytes) {
  auto area = StagingArea::open(staged()).value();
  std::set<std::filesystem::path> names;
  for (int round = 0; round < 5; ++round) {
    const auto copy = stage(area);  // removed again at the end of each round
    ASSERT_TRUE(copy);
    EXPECT_TRUE(names.insert(copy->path()).second) << copy->path();
  }
}

TEST_F(StagingTest, ANameThatExistsIsSkipped) {
  auto area = StagingArea::open(staged()).value();
  const auto taken = staged() / ("counter-" + hash_.substr(0, 16) + "-g1.so");
  write_bytes(taken, bytes_of_text("not ours"));
  std::filesystem::create_symlink("/nowhere",
                                  staged() / ("counter-" + hash_.substr(0, 16) + "-g2.so"));
  const auto copy = stage(area);
  ASSERT_TRUE(copy) << copy.error().message;
  EXPECT_EQ(copy->generation(), 3U);
  EXPECT_EQ(read_bytes(taken), bytes_of_text("not ours"));
}

TEST_F(StagingTest, ACopyGoesWithItsObject) {
  auto area = StagingArea::open(staged()).value();
  std::filesystem::path path;
  {
    auto copy = stage(area);
    ASSERT_TRUE(copy);
    path = copy->path();
    const StagedFile moved = *std::move(copy);
    EXPECT_TRUE(std::filesystem::exists(path));
    EXPECT_EQ(moved.path(), path);
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(StagingTest, WhatAnEarlierProcessLeftIsRemoved) {
  std::filesystem::create_directory(staged());
  write_bytes(staged() / "counter-0123456789abcdef-g1.so", bytes_);
  std::filesystem::create_symlink("/nowhere", staged() / "link.so");
  ASSERT_TRUE(StagingArea::open(staged()));
  EXPECT_TRUE(std::filesystem::is_empty(staged()));
}

TEST_F(StagingTest, AnOpenDirectoryIsMadePrivate) {
  std::filesystem::create_directory(staged());
  ASSERT_EQ(::chmod(staged().c_str(), 0777), 0);
  ASSERT_TRUE(StagingArea::open(staged()));
  EXPECT_EQ(mode_of(staged()), 0700U);
}

TEST_F(StagingTest, ALinkOrAFileInItsPlaceIsRefused) {
  const auto real = directory_.path() / "real";
  std::filesystem::create_directory(real);
  std::filesystem::create_directory_symlink(real, staged());
  auto area = StagingArea::open(staged());
  ASSERT_FALSE(area);
  EXPECT_EQ(area.error().code, Errc::kForbidden);
  std::filesystem::remove(staged());
  write_bytes(staged(), bytes_);
  area = StagingArea::open(staged());
  ASSERT_FALSE(area);
  EXPECT_EQ(area.error().code, Errc::kForbidden);
}

TEST_F(StagingTest, AForeignDirectoryIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a directory away";
  std::filesystem::create_directory(staged());
  ASSERT_EQ(::chown(staged().c_str(), 12345, 0), 0);
  EXPECT_EQ(StagingArea::open(staged()).error().code, Errc::kForbidden);
}

TEST_F(StagingTest, AMissingParentIsAnErrorThatNamesThePath) {
  const auto area = StagingArea::open(directory_.path() / "none" / "staged");
  EXPECT_EQ(area.error().code, Errc::kUnavailable);
  EXPECT_NE(area.error().message.find("none/staged"), std::string::npos);
}

TEST_F(StagingTest, ADirectoryThatVanishedIsAnErrorAndNoCrash) {
  auto area = StagingArea::open(staged()).value();
  std::filesystem::remove(staged());
  EXPECT_EQ(stage(area).error().code, Errc::kUnavailable);
}

}  // namespace
}  // namespace hearth::plugins
