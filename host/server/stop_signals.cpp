#include "server/stop_signals.hpp"

#include "base/assert.hpp"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdint>

#include <poll.h>
#include <signal.h>

namespace hearth::server {
namespace {

// Shorter than the time between two Ctrl-C of an operator.
constexpr std::chrono::milliseconds kEcho{100};

sigset_t stop_set() {
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, SIGTERM);
  ::sigaddset(&set, SIGINT);
  ::sigaddset(&set, SIGHUP);
  return set;
}

// Whether this process has a usable terminal.
bool has_terminal() {
  const int terminal = ::open("/dev/tty", O_RDONLY | O_NOCTTY | O_CLOEXEC);
  if (terminal >= 0) ::close(terminal);
  return terminal >= 0;
}

// True under nohup(1): the process must outlive the terminal. The check is needed because a blocked
// signal arrives even if it is ignored.
bool ignores_hangup() {
  struct sigaction now{};
  return ::sigaction(SIGHUP, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
}

}  // namespace

StopSignals::StopSignals()
    : had_terminal_(has_terminal() && !ignores_hangup()), end_(::eventfd(0, EFD_CLOEXEC)) {
  const sigset_t set = stop_set();
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGXFSZ, SIG_IGN);
  signals_ = ::signalfd(-1, &set, SFD_CLOEXEC);
  HEARTH_ASSERT(signals_ >= 0 && end_ >= 0, "a process that starts has descriptors");
  listener_ = std::thread([this] { listen(); });
}

StopSignals::~StopSignals() {
  const std::uint64_t one = 1;
  const ssize_t written = ::write(end_, &one, sizeof one);
  HEARTH_ASSERT(written == sizeof one, "an eventfd takes a one");
  listener_.join();
  ::close(signals_);
  ::close(end_);
  const sigset_t set = stop_set();
  ::pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

int StopSignals::wait() {
  came_.acquire();
  return taken();
}

std::optional<int> StopSignals::wait_for(std::chrono::milliseconds time) {
  return came_.try_acquire_for(time) ? std::optional(taken()) : std::nullopt;
}

int StopSignals::taken() const {
  const int signal = signal_;
  return signal != 0 ? signal : SIGHUP;
}

void StopSignals::listen() {
  std::array<pollfd, 2> sources{pollfd{signals_, POLLIN, 0}, pollfd{end_, POLLIN, 0}};
  std::chrono::steady_clock::time_point first;
  for (;;) {
    if (::poll(sources.data(), sources.size(), -1) < 0) continue;  // EINTR
    if (sources[1].revents != 0) return;
    signalfd_siginfo info{};
    if (::read(signals_, &info, sizeof info) != sizeof info) continue;
    const int number = static_cast<int>(info.ssi_signo);
    if (number == SIGHUP && (!had_terminal_ || has_terminal())) {
      came_.release();
      continue;
    }
    const auto now = std::chrono::steady_clock::now();
    if (signal_ != 0 && now - first > kEcho) ::_exit(128 + number);
    if (signal_ != 0) continue;
    signal_ = number;
    first = now;
    came_.release();
  }
}

}  // namespace hearth::server
