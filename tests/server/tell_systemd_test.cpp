#include "server/tell_systemd.hpp"

#include "base/file_descriptor.hpp"
#include "support/temp_directory.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <string>

namespace hearth::server {
namespace {

// What a socket of this name receives when tell_systemd() sends `state`.
std::string told(const std::string& name, const std::string& state) {
  const FileDescriptor socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::ranges::copy(name, address.sun_path);
  const bool is_abstract = name.front() == '@';
  if (is_abstract) address.sun_path[0] = '\0';
  const std::size_t size = offsetof(sockaddr_un, sun_path) + name.size() + (is_abstract ? 0U : 1U);
  EXPECT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address),  // NOLINT
                   static_cast<socklen_t>(size)),
            0);
  EXPECT_TRUE(tell_systemd(name.c_str(), state));
  std::array<char, 100> bytes{};
  const ssize_t count = ::recv(socket.get(), bytes.data(), bytes.size(), 0);
  return {bytes.data(), static_cast<std::size_t>(std::max<ssize_t>(count, 0))};
}

TEST(TellSystemdTest, OneDatagramComesToAPathAndToAnAbstractName) {
  const hearth::testing::TempDirectory directory;
  EXPECT_EQ(told(directory.path() / "notify", "READY=1"), "READY=1");
  EXPECT_EQ(told("@hearth-test-" + std::to_string(::getpid()), "READY=1"), "READY=1");
}

TEST(TellSystemdTest, AServerThatStopsAsksForItsTime) {
  EXPECT_EQ(stopping_state(std::chrono::minutes(2)), "STOPPING=1\nEXTEND_TIMEOUT_USEC=120000000");
}

TEST(TellSystemdTest, NothingIsSentWhereNothingListens) {
  const hearth::testing::TempDirectory directory;
  EXPECT_FALSE(tell_systemd(nullptr, "READY=1"));
  for (const std::string& name :
       {std::string(), std::string("relative"), (directory.path() / "nobody").native(),
        "/" + std::string(200, 'a')})
    EXPECT_FALSE(tell_systemd(name.c_str(), "READY=1")) << name;
}

}  // namespace
}  // namespace hearth::server
