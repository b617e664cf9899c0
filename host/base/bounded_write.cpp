#include "base/bounded_write.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <ctime>

#include <poll.h>

namespace hearth {
namespace {

static_assert(kAtomicWrite <= PIPE_BUF);

// steady_clock is not promised to be safe in a signal handler; this is.
std::chrono::milliseconds monotonic_time() noexcept {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::milliseconds(now.tv_nsec / 1'000'000);
}

}  // namespace

Written write_within(int descriptor, std::string_view text,
                     std::chrono::milliseconds patience) noexcept {
  const std::chrono::milliseconds deadline = monotonic_time() + patience;
  Written done;
  while (done.bytes < text.size()) {
    const std::chrono::milliseconds left = deadline - monotonic_time();
    pollfd room{.fd = descriptor, .events = POLLOUT, .revents = 0};
    const int ready = ::poll(&room, 1, static_cast<int>(std::max(left.count(), 0L)));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return done;
    const std::size_t size = std::min(text.size() - done.bytes, kAtomicWrite);
    const ssize_t written = ::write(descriptor, text.data() + done.bytes, size);
    if (written > 0) {
      done.bytes += static_cast<std::size_t>(written);
    } else if (written == 0 || (errno != EINTR && errno != EAGAIN)) {
      done.refused = true;
      return done;
    }
  }
  return done;
}

}  // namespace hearth
