#include "server/tell_systemd.hpp"

#include "base/file_descriptor.hpp"

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include <algorithm>
#include <cstddef>

namespace hearth::server {

bool tell_systemd(const char* socket, std::string_view state) {
  const std::string_view name = socket == nullptr ? "" : socket;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const bool is_abstract = name.starts_with('@');
  if (!(name.starts_with('/') || is_abstract) || name.size() >= sizeof address.sun_path)
    return false;
  std::ranges::copy(name, address.sun_path);
  if (is_abstract) address.sun_path[0] = '\0';
  // A path ends with a zero; an abstract name is exactly as long as it is.
  const std::size_t size = offsetof(sockaddr_un, sun_path) + name.size() + (is_abstract ? 0U : 1U);
  const FileDescriptor sender(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  // Its queue may be full while the machine starts. It does not ask again.
  const timeval patience{.tv_sec = 5, .tv_usec = 0};
  (void)::setsockopt(sender.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  const auto* const to = reinterpret_cast<const sockaddr*>(&address);  // NOLINT: the interface
  return sender.is_open() &&
         ::sendto(sender.get(), state.data(), state.size(), MSG_NOSIGNAL, to,
                  static_cast<socklen_t>(size)) == static_cast<ssize_t>(state.size());
}

std::string stopping_state(std::chrono::microseconds most) {
  return "STOPPING=1\nEXTEND_TIMEOUT_USEC=" + std::to_string(most.count());
}

}  // namespace hearth::server
