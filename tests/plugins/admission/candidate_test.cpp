#include "plugins/admission/candidate.hpp"

#include "base/sha256.hpp"
#include "plugins/test_libraries.hpp"
#include "support/manual_clock.hpp"
#include "support/temp_directory.hpp"
#include "support/unprivileged.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace hearth::plugins {
namespace {

using namespace testing;
using namespace std::chrono_literals;
using hearth::testing::ManualClock;
using hearth::testing::TempDirectory;
using hearth::testing::Unprivileged;

class CandidateTest : public ::testing::Test {
 protected:
  CandidateTest() {
    // Files have the time of the system; an hour later all of them have settled.
    clock_.set_wall(std::chrono::system_clock::now() + 1h);
    policy_.user = ::geteuid();
    policy_.pause = [this](std::chrono::milliseconds time) {
      ++pauses_;
      clock_.advance(time);
    };
  }

  std::filesystem::path make_file(std::string_view text = "some bytes") {
    const auto path = directory_.path() / "a.so";
    write_bytes(path, bytes_of_text(text));
    return path;
  }

  std::string refusal_of(const std::filesystem::path& path) {
    const auto candidate = read_candidate(path, clock_, policy_);
    EXPECT_FALSE(candidate);
    return candidate ? "" : candidate.error().rule;
  }

  TempDirectory directory_;
  ManualClock clock_;
  ReadingPolicy policy_{};
  int pauses_ = 0;
};

TEST_F(CandidateTest, GivesTheBytesAndTheirHash) {
  const auto path = make_file("abc");
  const auto candidate = read_candidate(path, clock_, policy_).value();
  EXPECT_EQ(candidate.bytes, bytes_of_text("abc"));
  EXPECT_EQ(candidate.sha256, sha256_hex("abc"));
  EXPECT_EQ(candidate.file, path);
  EXPECT_EQ(pauses_, 0);
  const auto again = read_candidate(path, clock_, policy_).value();
  EXPECT_EQ(again.sha256, candidate.sha256);
}

TEST_F(CandidateTest, F1_ALinkAPipeAndADirectoryAreRefusedAtOnce) {
  std::filesystem::create_symlink(make_file(), directory_.path() / "link.so");
  ASSERT_EQ(::mkfifo((directory_.path() / "pipe.so").c_str(), 0600), 0);
  std::filesystem::create_directory(directory_.path() / "directory.so");
  for (const char* const name : {"link.so", "pipe.so", "directory.so"})
    EXPECT_EQ(refusal_of(directory_.path() / name), "F1") << name;
}

TEST_F(CandidateTest, F2_AForeignFileIsRefused) {
  const auto path = make_file();
  if (::geteuid() == 0) {
    ASSERT_EQ(::chown(path.c_str(), 12345, 0), 0);
  } else {
    policy_.user = ::geteuid() + 1;
  }
  EXPECT_EQ(refusal_of(path), "F2");
}

TEST_F(CandidateTest, F3_AFileThatOthersCanWriteIsRefused) {
  const auto path = make_file();
  ASSERT_EQ(::chmod(path.c_str(), 0664), 0);
  EXPECT_EQ(refusal_of(path), "F3");
}

TEST_F(CandidateTest, F5_AnEmptyFileIsRefusedOnceItHasSettled) {
  EXPECT_EQ(refusal_of(make_file("")), "F5");
  EXPECT_EQ(pauses_, 0);
}

TEST_F(CandidateTest, F5_AHugeFileIsRefusedWithoutBeingRead) {
  const auto path = make_file();
  std::filesystem::resize_file(path, kMaxLibraryBytes + 1);  // a hole: takes no space
  EXPECT_EQ(refusal_of(path), "F5");
}

TEST_F(CandidateTest, F7_AMissingFileIsRefusedWithTheSystemsWords) {
  const auto candidate = read_candidate(directory_.path() / "none.so", clock_, policy_);
  EXPECT_EQ(candidate.error().rule, "F7");
  EXPECT_NE(candidate.error().reason.find("No such file"), std::string::npos);
}

TEST_F(CandidateTest, F7_AnUnreadableFileIsRefused) {
  const auto path = make_file();
  std::filesystem::permissions(directory_.path(), std::filesystem::perms{0755});
  const auto read_with_mode = [&](mode_t mode) {
    EXPECT_EQ(::chmod(path.c_str(), mode), 0);
    const Unprivileged nobody;
    return read_candidate(path, clock_, policy_);
  };
  EXPECT_TRUE(read_with_mode(0644));  // the mode alone makes the difference
  const auto candidate = read_with_mode(0);
  EXPECT_EQ(candidate.error().rule, "F7");
  EXPECT_NE(candidate.error().reason.find("Permission denied"), std::string::npos);
}

TEST_F(CandidateTest, AFreshFileIsReadOnlyAfterItHasSettled) {
  const auto path = make_file();
  clock_.set_wall(std::chrono::system_clock::now());
  const auto candidate = read_candidate(path, clock_, policy_).value();
  EXPECT_EQ(pauses_, 1);
}

TEST_F(CandidateTest, AFileThatGrowsWhileItSettlesIsReadWhole) {
  const auto path = make_file("first");
  clock_.set_wall(std::chrono::system_clock::now());
  policy_.pause = [&](std::chrono::milliseconds time) {
    if (++pauses_ > 1) return clock_.advance(time);
    write_bytes(path, bytes_of_text("first and second"));
    clock_.set_wall(std::chrono::system_clock::now());  // and it is young again
  };
  const auto candidate = read_candidate(path, clock_, policy_).value();
  EXPECT_EQ(candidate.bytes, bytes_of_text("first and second"));
  EXPECT_EQ(pauses_, 2);
}

TEST_F(CandidateTest, AnEmptyFileThatIsYoungIsGivenTime) {
  const auto path = make_file("");
  clock_.set_wall(std::chrono::system_clock::now());
  policy_.pause = [&](std::chrono::milliseconds) {
    if (++pauses_ == 1) write_bytes(path, bytes_of_text("now it is here"));
    clock_.set_wall(std::chrono::system_clock::now() + 1h);
  };
  const auto candidate = read_candidate(path, clock_, policy_).value();
  EXPECT_EQ(candidate.bytes, bytes_of_text("now it is here"));
}

TEST_F(CandidateTest, F6_AFileThatNeverSettlesIsGivenUp) {
  const auto path = make_file();
  clock_.set_wall(std::chrono::system_clock::now());
  policy_.pause = [&](std::chrono::milliseconds) { ++pauses_; };  // time stands still
  EXPECT_EQ(refusal_of(path), "F6");
  EXPECT_EQ(pauses_, policy_.attempts);
}

TEST_F(CandidateTest, ATimeInTheFutureDoesNotHoldAFileBack) {
  const auto path = make_file();
  clock_.set_wall(std::chrono::system_clock::now() - 24h);
  EXPECT_TRUE(read_candidate(path, clock_, policy_));
  EXPECT_EQ(pauses_, 0);
}

}  // namespace
}  // namespace hearth::plugins
