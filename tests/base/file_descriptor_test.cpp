#include "base/file_descriptor.hpp"

#include <fcntl.h>

#include <gtest/gtest.h>

namespace hearth {
namespace {

bool is_inherited(int descriptor) {
  return (::fcntl(descriptor, F_GETFD) & FD_CLOEXEC) == 0;
}

TEST(FileDescriptorTest, OnlyTheStandardDescriptorsAreLeftToChildren) {
  const FileDescriptor low(::dup(STDIN_FILENO));
  const FileDescriptor high(::fcntl(STDIN_FILENO, F_DUPFD, 300));
  ASSERT_TRUE(is_inherited(low.get()) && is_inherited(high.get()));
  keep_from_children();
  EXPECT_FALSE(is_inherited(low.get()));
  EXPECT_FALSE(is_inherited(high.get()));
  for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    EXPECT_TRUE(is_inherited(standard));
}

TEST(FileDescriptorTest, ClosesItsDescriptorOnceAndAMovedOneNot) {
  const int number = ::dup(STDIN_FILENO);
  {
    FileDescriptor first(number);
    const FileDescriptor second(std::move(first));
    EXPECT_FALSE(first.is_open());  // NOLINT(bugprone-use-after-move)
    EXPECT_EQ(second.get(), number);
  }
  EXPECT_EQ(::fcntl(number, F_GETFD), -1);
}

}  // namespace
}  // namespace hearth
