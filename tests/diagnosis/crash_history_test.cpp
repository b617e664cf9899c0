#include "diagnosis/crash_history.hpp"

#include "base/files.hpp"
#include "support/temp_directory.hpp"

#include <gtest/gtest.h>

#include <array>
#include <string>

namespace hearth::diagnosis {
namespace {

class CrashHistoryTest : public ::testing::Test {
 protected:
  void leave(std::int64_t time_ms) {
    std::array<char, kMaxCrashRecord> buffer{};
    CrashReport report;
    report.reason = "SIGSEGV";
    report.time_ms = time_ms;
    leave(std::string(format_crash(report, buffer)));
  }
  void leave(const std::string& text) {
    std::filesystem::create_directory(history_.pending().parent_path());
    ASSERT_TRUE(write_file_atomically(history_.pending(), text));
  }

  testing::TempDirectory directory_;
  CrashHistory history_{directory_.path()};
};

TEST_F(CrashHistoryTest, WithoutARecordThereWasNoCrash) {
  EXPECT_FALSE(history_.take_pending().value());
  EXPECT_TRUE(std::filesystem::is_directory(directory_.path() / "crashes")) << "to be written into";
  EXPECT_TRUE(history_.all().empty());
}

TEST_F(CrashHistoryTest, ARecordIsTakenOnceAndKept) {
  leave(5);
  EXPECT_EQ(history_.take_pending().value()->time_ms, 5);
  EXPECT_FALSE(history_.take_pending().value());
  ASSERT_EQ(history_.all().size(), 1U);
  EXPECT_EQ(history_.all().front().reason, "SIGSEGV");
}

TEST_F(CrashHistoryTest, TheFramesOfARecordAreNamedAndStayNamed) {
  leave("hearth crash 1\nreason=SIGSEGV\ntime_ms=5\nframe=18 /nowhere/a.so\nframe=32 hearth\n");
  EXPECT_EQ(history_.take_pending().value()->stack, "a.so+0x12 < hearth+0x20");
  EXPECT_EQ(history_.all().front().stack, "a.so+0x12 < hearth+0x20");
}

TEST_F(CrashHistoryTest, WhatIsNoRecordIsRemoved) {
  for (const std::string& text : {std::string(), std::string("?"), std::string(200'000, 'x')}) {
    leave(text);
    EXPECT_FALSE(history_.take_pending().value());
    EXPECT_FALSE(std::filesystem::exists(history_.pending()));
  }
  EXPECT_TRUE(history_.all().empty());
}

TEST_F(CrashHistoryTest, TheLastTwentyAreKept) {
  for (std::int64_t time = 90; time < 115; ++time) {
    leave(time);
    EXPECT_TRUE(history_.take_pending().value());
  }
  const auto all = history_.all();
  ASSERT_EQ(all.size(), CrashHistory::kKept);
  EXPECT_EQ(all.front().time_ms, 114);
  EXPECT_EQ(all.back().time_ms, 95);
}

TEST_F(CrashHistoryTest, TheLastOnesAreKeptAndComeFirstIfTheClockWasSetBack) {
  for (std::int64_t crash = 0; crash < 25; ++crash) {
    leave(crash < 20 ? 1'000 + crash : 500);
    EXPECT_TRUE(history_.take_pending().value());
  }
  const auto all = history_.all();
  ASSERT_EQ(all.size(), CrashHistory::kKept);
  EXPECT_EQ(all.front().time_ms, 500);
  EXPECT_EQ(all.at(4).time_ms, 500);
  EXPECT_EQ(all.at(5).time_ms, 1'019);
  EXPECT_EQ(all.back().time_ms, 1'005);
}

TEST_F(CrashHistoryTest, ADirectoryThatCannotBeMadeIsAnError) {
  ASSERT_TRUE(write_file_atomically(directory_.path() / "crashes", "no directory"));
  EXPECT_FALSE(history_.take_pending());
}

}  // namespace
}  // namespace hearth::diagnosis
