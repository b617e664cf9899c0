#include "telemetry/stderr_logger.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

namespace hearth {
namespace {

class StderrLoggerTest : public ::testing::Test {
 protected:
  void SetUp() override { ::testing::internal::CaptureStderr(); }
  void TearDown() override {
    if (!taken_) static_cast<void>(written());
  }
  std::string written() {
    taken_ = true;
    return ::testing::internal::GetCapturedStderr();
  }

 private:
  bool taken_ = false;
};

TEST_F(StderrLoggerTest, WritesOneLineAnEventAtOnce) {
  const auto logger = make_stderr_logger(LogLevel::kInfo, LogFormat::kHuman);
  logger->write(LogLevel::kWarn, "plugin.refused", {{"file", "a\nb"}});
  logger->write(LogLevel::kInfo, "plugin.loaded");
  const std::string text = written();  // the logger still lives: nothing waits in a buffer
  EXPECT_EQ(std::ranges::count(text, '\n'), 2);
  EXPECT_NE(text.find(" WARN  plugin.refused file=\"a\\nb\"\n"), std::string::npos);
  EXPECT_TRUE(text.ends_with(" INFO  plugin.loaded\n"));
}

TEST_F(StderrLoggerTest, WritesNothingBelowItsLevel) {
  const auto logger = make_stderr_logger(LogLevel::kWarn, LogFormat::kHuman);
  EXPECT_FALSE(logger->enabled(LogLevel::kInfo));
  EXPECT_TRUE(logger->enabled(LogLevel::kWarn));
  logger->write(LogLevel::kInfo, "quiet");
  logger->write(LogLevel::kInfo, "quiet", std::span<const LogField>{});
  EXPECT_EQ(written(), "");
}

TEST_F(StderrLoggerTest, TheLowestLevelPassesWithItsText) {
  const auto logger = make_stderr_logger(LogLevel::kTrace, LogFormat::kJson);
  logger->write(LogLevel::kTrace, "fine", {{"format", "%v {} %s"}});
  const std::string text = written();
  EXPECT_NE(text.find(R"("level":"trace","event":"fine","format":"%v {} %s"})"), std::string::npos);
}

TEST_F(StderrLoggerTest, AutoIsJsonWhereStderrIsNoTerminal) {
  make_stderr_logger(LogLevel::kInfo, LogFormat::kAuto)->write(LogLevel::kInfo, "x");
  EXPECT_TRUE(written().starts_with("{\"time\":"));
}

TEST_F(StderrLoggerTest, CountsTheBytesOfLinesThatCannotBeWritten) {
  const auto logger = make_stderr_logger(LogLevel::kInfo, LogFormat::kHuman);
  logger->write(LogLevel::kInfo, "heard");
  EXPECT_EQ(logger->dropped().bytes, 0U);
  const int kept = ::dup(STDERR_FILENO);
  const int full = ::open("/dev/full", O_WRONLY | O_CLOEXEC);
  ASSERT_GE(full, 0);
  ::dup2(full, STDERR_FILENO);
  logger->write(LogLevel::kInfo, "unheard", {{"k", std::string(1000, 'x')}});
  ::dup2(kept, STDERR_FILENO);
  ::close(full);
  ::close(kept);
  EXPECT_GT(logger->dropped().bytes, 1000U);
  const std::uint64_t lost = logger->dropped().bytes;
  logger->write(LogLevel::kInfo, "heard_again");
  EXPECT_EQ(logger->dropped().bytes, lost);
  const std::string text = written();
  EXPECT_NE(text.find("heard_again"), std::string::npos);
  EXPECT_EQ(text.find("unheard"), std::string::npos);
}

TEST_F(StderrLoggerTest, LinesOfManyThreadsStayWhole) {
  const auto logger = make_stderr_logger(LogLevel::kInfo, LogFormat::kJson);
  const std::string value(500, 'x');
  {
    std::vector<std::jthread> threads;
    threads.reserve(4);
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&logger, &value] {
        for (int n = 0; n < 100; ++n) logger->write(LogLevel::kInfo, "x", {{"k", value}});
      });
    }
  }
  const std::string text = written();
  const std::string end = "\"event\":\"x\",\"k\":\"" + value + "\"}\n";
  std::size_t whole = 0;
  for (std::size_t at = text.find(end); at != std::string::npos; at = text.find(end, at + 1)) {
    ++whole;
  }
  EXPECT_EQ(whole, 400U);
  EXPECT_EQ(std::ranges::count(text, '\n'), 400);
}

TEST_F(StderrLoggerTest, TheQueuedOneWritesTheSameLines) {
  {
    const auto logger = make_queued_stderr_logger(LogLevel::kInfo, LogFormat::kHuman);
    logger->write(LogLevel::kWarn, "plugin.refused", {{"file", "a\nb"}});
    logger->write(LogLevel::kDebug, "quiet");
    EXPECT_EQ(logger->dropped().lines, 0U);
  }
  const std::string text = written();
  EXPECT_TRUE(text.ends_with(" WARN  plugin.refused file=\"a\\nb\"\n")) << text;
  EXPECT_EQ(std::ranges::count(text, '\n'), 1);
}

}  // namespace
}  // namespace hearth
