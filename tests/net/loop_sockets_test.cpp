#include "net/loop_sockets.hpp"

#include "base/file_descriptor.hpp"

#include <sys/socket.h>

#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <string>

namespace hearth::net {
namespace {

class LoopSocketsTest : public ::testing::Test {
 protected:
  LoopSocketsTest() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()), 0);
    near_ = FileDescriptor(ends[0]);
    far_ = FileDescriptor(ends[1]);
    sockets_.emplace(loop_, [this](int socket, bool readable, bool writable) {
      EXPECT_EQ(socket, near_.get());
      told_ += readable ? 'r' : writable ? 'w' : '?';
      if (told_.size() >= 3) sockets_->watch(socket, false, false);
    });
  }
  void settle() {
    loop_.restart();
    loop_.poll();
  }

  asio::io_context loop_{1};
  FileDescriptor near_;
  FileDescriptor far_;
  std::string told_;
  std::optional<LoopSockets> sockets_;
};

TEST_F(LoopSocketsTest, WhatIsReadyIsToldAgainAndAgain) {
  sockets_->watch(near_.get(), true, false);
  settle();
  EXPECT_EQ(told_, "");
  ASSERT_EQ(::write(far_.get(), "x", 1), 1);
  settle();
  EXPECT_EQ(told_, "rrr") << "until it was forgotten, for it was never read";
}

TEST_F(LoopSocketsTest, OnlyWhatIsAskedForIsTold) {
  ASSERT_EQ(::write(far_.get(), "x", 1), 1);
  sockets_->watch(near_.get(), false, true);
  settle();
  EXPECT_EQ(told_, "www");
}

TEST_F(LoopSocketsTest, WhatIsForgottenStaysOpenAndIsNotTold) {
  ASSERT_EQ(::write(far_.get(), "x", 1), 1);
  sockets_->watch(near_.get(), true, true);
  sockets_->watch(near_.get(), false, false);
  settle();
  EXPECT_EQ(told_, "");
  char byte = 0;
  EXPECT_EQ(::read(near_.get(), &byte, 1), 1);
}

TEST_F(LoopSocketsTest, WhatIsDestroyedTellsNothing) {
  ASSERT_EQ(::write(far_.get(), "x", 1), 1);
  sockets_->watch(near_.get(), true, true);
  sockets_.reset();
  settle();
  EXPECT_EQ(told_, "");
}

}  // namespace
}  // namespace hearth::net
