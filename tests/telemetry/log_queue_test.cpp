#include "telemetry/log_queue.hpp"

#include "support/unread_pipe.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>

namespace hearth {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

std::unique_ptr<LogQueue> queue_to(int descriptor) {
  return std::make_unique<LogQueue>(descriptor, [](DroppedLines dropped) {
    return "dropped " + std::to_string(dropped.lines) + "\n";
  });
}

TEST(LogQueueTest, WritesTheLinesInTheirOrder) {
  const testing::UnreadPipe pipe;
  const auto queue = queue_to(pipe.writing_end());
  for (int i = 0; i < 100; ++i) queue->put(std::to_string(i) + "\n");
  std::string expected;
  for (int i = 0; i < 100; ++i) expected += std::to_string(i) + "\n";
  EXPECT_EQ(pipe.read_until("\n99\n"), expected);
  EXPECT_EQ(queue->dropped().lines, 0U);
}

TEST(LogQueueTest, ALineLongerThanThePipeComesWhole) {
  const testing::UnreadPipe pipe;
  const auto queue = queue_to(pipe.writing_end());
  const std::string line = std::string(100'000, 'x') + "\n";
  queue->put(line);
  EXPECT_EQ(pipe.read_until("\n"), line);
}

// How often this thread has left the processor by itself: to sleep, or for a lock.
long waits_of_this_thread() {
  rusage usage{};
  EXPECT_EQ(::getrusage(RUSAGE_THREAD, &usage), 0);
  return usage.ru_nvcsw;
}

TEST(LogQueueTest, WhatFindsNoRoomIsDroppedCountedAndReported) {
  const testing::UnreadPipe pipe;
  pipe.fill();
  const auto queue = queue_to(pipe.writing_end());
  const std::string line = std::string(1023, 'x') + "\n";
  constexpr std::size_t kLines = 2 * LogQueue::kMaxBytes / 1024;
  const long before = waits_of_this_thread();
  for (std::size_t i = 0; i < kLines; ++i) queue->put(line);
  const long waits = waits_of_this_thread() - before;
  const DroppedLines dropped = queue->dropped();
  EXPECT_LT(waits, static_cast<long>(dropped.lines / 10))
      << "they took turns with the writer for its mutex, at most";
  // Up to one batch has left the queue for the writer.
  EXPECT_GE(dropped.lines, kLines / 2 - 4);
  EXPECT_LE(dropped.lines, kLines / 2);
  EXPECT_EQ(dropped.bytes, dropped.lines * line.size());

  // In one report, or two if the writer came when some had been dropped already.
  std::uint64_t reported = 0;
  while (reported < dropped.lines) {
    std::string told = pipe.read_until("dropped ");
    ASSERT_TRUE(told.ends_with("dropped ")) << "nothing more comes";
    reported += std::stoul(pipe.read_until("\n"));
  }
  EXPECT_EQ(reported, dropped.lines);
  queue->put("after\n");
  const std::string rest = pipe.read_until("after\n");
  EXPECT_EQ(rest.find("dropped"), std::string::npos) << "told once";
}

TEST(LogQueueTest, WhatTheSystemRefusesIsCounted) {
  const int full = ::open("/dev/full", O_WRONLY | O_CLOEXEC);
  const auto queue = queue_to(full);
  queue->put("refused\n");
  await_log_written(std::chrono::seconds(10));
  EXPECT_EQ(queue->dropped().lines, 1U);
  EXPECT_EQ(queue->dropped().bytes, 8U);
  ::close(full);
}

TEST(LogQueueTest, TheEndWritesWhatIsLeft) {
  const testing::UnreadPipe pipe;
  queue_to(pipe.writing_end())->put("the last words\n");
  EXPECT_EQ(pipe.read_until("\n"), "the last words\n");
}

TEST(LogQueueTest, TheEndDoesNotWaitForEver) {
  const testing::UnreadPipe pipe;
  pipe.fill();
  auto queue = queue_to(pipe.writing_end());
  queue->put("unheard\n");
  const auto start = steady_clock::now();
  await_log_written(milliseconds(20));
  queue.reset();
  EXPECT_LT(steady_clock::now() - start, std::chrono::seconds(5));
}

TEST(LogQueueTest, AForkedChildWritesByItself) {
  const testing::UnreadPipe pipe;
  auto queue = queue_to(pipe.writing_end());
  const pid_t child = ::fork();
  if (child == 0) {
    queue->put("from the child\n");
    queue.reset();
    ::_exit(0);
  }
  EXPECT_EQ(pipe.read_until("\n"), "from the child\n");
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace hearth
