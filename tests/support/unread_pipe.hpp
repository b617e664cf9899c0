#pragma once
// A pipe that nothing reads until a test does.

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <string>
#include <system_error>

#include <poll.h>

namespace hearth::testing {

class UnreadPipe {
 public:
  UnreadPipe() {
    if (::pipe2(ends_.data(), O_CLOEXEC) != 0)
      throw std::system_error(errno, std::generic_category(), "pipe");
    ::fcntl(ends_[1], F_SETPIPE_SZ, 4096);
  }
  ~UnreadPipe() {
    ::close(ends_[0]);
    ::close(ends_[1]);
  }
  UnreadPipe(const UnreadPipe&) = delete;
  UnreadPipe& operator=(const UnreadPipe&) = delete;

  [[nodiscard]] int writing_end() const { return ends_[1]; }

  // Fills the pipe with dots.
  void fill() const {
    const std::string path = "/proc/self/fd/" + std::to_string(ends_[1]);
    const int filler = ::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    while (::write(filler, ".", 1) > 0) {
    }
    ::close(filler);
  }

  // Reads up to the end of the first `end`. Without `end`, it returns what it has read after ten
  // seconds of silence.
  std::string read_until(const std::string& end) const {
    std::string text;
    while (!text.ends_with(end)) {
      pollfd look{.fd = ends_[0], .events = POLLIN, .revents = 0};
      char next = 0;
      if (::poll(&look, 1, 10'000) <= 0 || ::read(ends_[0], &next, 1) <= 0) break;
      text.push_back(next);
    }
    return text.substr(std::min(text.find_first_not_of('.'), text.size()));
  }

 private:
  std::array<int, 2> ends_{-1, -1};
};

}  // namespace hearth::testing
