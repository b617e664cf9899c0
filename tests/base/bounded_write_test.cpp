#include "base/bounded_write.hpp"

#include "support/unread_pipe.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>

namespace hearth {
namespace {

using std::chrono::milliseconds;

TEST(BoundedWriteTest, WritesAllWhereThereIsRoom) {
  const testing::UnreadPipe pipe;
  const Written done = write_within(pipe.writing_end(), "all of it\n", milliseconds(0));
  EXPECT_EQ(done.bytes, 10U);
  EXPECT_FALSE(done.refused);
  EXPECT_EQ(pipe.read_until("\n"), "all of it\n");
}

TEST(BoundedWriteTest, GivesUpWhenNothingReads) {
  const testing::UnreadPipe pipe;
  pipe.fill();
  const auto start = std::chrono::steady_clock::now();
  const Written done = write_within(pipe.writing_end(), "unheard", milliseconds(30));
  EXPECT_EQ(done.bytes, 0U);
  EXPECT_FALSE(done.refused);
  EXPECT_GE(std::chrono::steady_clock::now() - start, milliseconds(29));
}

TEST(BoundedWriteTest, WaitsForAReaderThatComes) {
  const testing::UnreadPipe pipe;
  const std::string text(50'000, 'x');
  std::string read;
  {
    const std::jthread reader([&] { read = pipe.read_until("\n"); });
    EXPECT_EQ(write_within(pipe.writing_end(), text + "\n", std::chrono::seconds(10)).bytes,
              text.size() + 1);
  }
  EXPECT_EQ(read, text + "\n");
}

TEST(BoundedWriteTest, SaysWhenTheSystemRefuses) {
  const int full = ::open("/dev/full", O_WRONLY | O_CLOEXEC);
  EXPECT_TRUE(write_within(full, "x", std::chrono::seconds(10)).refused);
  ::close(full);
}

}  // namespace
}  // namespace hearth
