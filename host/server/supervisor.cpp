#include "server/supervisor.hpp"

#include "base/assert.hpp"
#include "base/error.hpp"
#include "diagnosis/exit_status.hpp"
#include "server/restart_pacing.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>
#include <optional>
#include <string_view>
#include <utility>

#include <poll.h>
#include <signal.h>
#include <spawn.h>

namespace hearth::server {
namespace {

using SteadyClock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// The child's descriptor of the pipe: after the three standard ones, which it shares with the
// supervisor.
constexpr int kChildDescriptor = 3;

constexpr std::string_view kFlag = "--supervised";

// What the child says over the pipe.
constexpr char kReady = 'r';
constexpr char kHungUp = 'h';

std::string signal_text(int signal) {
  const char* const name = ::sigabbrev_np(signal);
  return name != nullptr ? "SIG" + std::string(name) : "signal " + std::to_string(signal);
}

// The signals that a supervisor waits for, blocked while an object lives.
class AwaitedSignals {
 public:
  AwaitedSignals() {
    ::sigemptyset(&set_);
    for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGCHLD}) ::sigaddset(&set_, number);
    ::pthread_sigmask(SIG_BLOCK, &set_, &before_);
  }
  ~AwaitedSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  AwaitedSignals(const AwaitedSignals&) = delete;
  AwaitedSignals& operator=(const AwaitedSignals&) = delete;

  // The next signal; si_signo 0 if the time is over first.
  [[nodiscard]] siginfo_t wait_until(std::optional<SteadyClock::time_point> deadline) const {
    siginfo_t signal{};
    for (;;) {
      int number = -1;
      if (deadline) {
        const auto left = std::max(SteadyClock::duration::zero(), *deadline - SteadyClock::now());
        const auto seconds = std::chrono::floor<std::chrono::seconds>(left);
        const timespec limit{.tv_sec = seconds.count(),
                             .tv_nsec = std::chrono::nanoseconds(left - seconds).count()};
        number = ::sigtimedwait(&set_, &signal, &limit);
        if (number < 0 && errno == EAGAIN) return {};
      } else {
        number = ::sigwaitinfo(&set_, &signal);
      }
      if (number > 0) return signal;  // otherwise EINTR, from a debugger
    }
  }

 private:
  sigset_t set_{};
  sigset_t before_{};
};

// The parts of posix_spawn that must be freed. The child begins with no signal blocked or ignored,
// except SIGHUP. SIGHUP stays blocked until the server waits for it: otherwise a SIGHUP that is
// passed on earlier would end the child. It also stays ignored if it is ignored here (nohup).
class SpawnSetup {
 public:
  explicit SpawnSetup(int words_pipe) {
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawnattr_init(&attributes);
    sigset_t blocked{};
    sigset_t reset{};
    ::sigemptyset(&blocked);
    ::sigaddset(&blocked, SIGHUP);
    ::sigfillset(&reset);
    ::sigdelset(&reset, SIGHUP);
    ::posix_spawn_file_actions_adddup2(&actions, words_pipe, kChildDescriptor);
    ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    ::posix_spawnattr_setsigmask(&attributes, &blocked);
    ::posix_spawnattr_setsigdefault(&attributes, &reset);
  }
  ~SpawnSetup() {
    ::posix_spawn_file_actions_destroy(&actions);
    ::posix_spawnattr_destroy(&attributes);
  }
  SpawnSetup(const SpawnSetup&) = delete;
  SpawnSetup& operator=(const SpawnSetup&) = delete;

  posix_spawn_file_actions_t actions{};
  posix_spawnattr_t attributes{};
};

// Child processes inherit neither end. Both numbers are above kChildDescriptor.
std::array<int, 2> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) return {-1, -1};
  for (int& end : ends) {
    const int higher = ::fcntl(end, F_DUPFD_CLOEXEC, kChildDescriptor + 1);
    ::close(end);
    end = higher;
  }
  return ends;
}

class Supervisor {
 public:
  Supervisor(const std::vector<std::string>& arguments, const SupervisorRules& rules,
             Logger& logger)
      : texts_(arguments), rules_(rules), logger_(logger) {
    texts_.insert(texts_.begin(), "hearth");
    texts_.emplace_back(kSupervisorOption);
    texts_.push_back(std::to_string(kChildDescriptor));
    for (std::string& text : texts_) arguments_.push_back(text.data());
    arguments_.push_back(nullptr);
  }

  int run() {
    for (;;) {
      if (const int error = start(); error != 0) {
        logger_.write(LogLevel::kError, "supervisor.failed",
                      {{"reason", "the server cannot be started: " + system_text(error)}});
        return kExitFailed;
      }
      const int status = wait_for_end();
      const milliseconds uptime = std::chrono::floor<milliseconds>(SteadyClock::now() - started_);
      if (const auto last = final_status(status)) return *last;
      if (!pause(status, uptime)) return kExitClean;
    }
  }

 private:
  // 0, or the error number.
  int start() {
    const auto [words, told] = make_pipe();
    if (words < 0 || told < 0) return errno;
    words_pipe_ = words;
    said_hung_up_ = false;
    started_ = SteadyClock::now();
    const SpawnSetup setup(told);
    const int error = ::posix_spawn(&child_, "/proc/self/exe", &setup.actions, &setup.attributes,
                                    arguments_.data(), environ);
    ::close(told);
    if (error != 0) {
      ::close(std::exchange(words_pipe_, -1));
      return error;
    }
    logger_.write(LogLevel::kInfo, "supervisor.started", {{"pid", child_}});
    return 0;
  }

  // As waitpid() gives it.
  int wait_for_end() {
    for (;;) {
      const siginfo_t signal = signals_.wait_until(std::nullopt);
      if (signal.si_signo != SIGCHLD) {
        if (signal.si_pid == child_) continue;  // of a library; it has no say here
        if (signal.si_signo != SIGHUP) stopping_ = true;
        ::kill(child_, signal.si_signo);
        continue;
      }
      const std::optional<int> status = reap();
      if (!status) continue;
      std::array<char, 2> words{};
      // (Zeros stay where there is no word.)
      const ssize_t count = ::read(words_pipe_, words.data(), words.size());
      static_cast<void>(count);
      for (const char word : words) {
        was_ready_ = was_ready_ || word == kReady;
        said_hung_up_ = said_hung_up_ || word == kHungUp;
      }
      ::close(std::exchange(words_pipe_, -1));
      return *status;
    }
  }

  // The child's status, once it has ended. Reaps orphans too, if the rules say so.
  [[nodiscard]] std::optional<int> reap() const {
    std::optional<int> of_child;
    int status = 0;
    const pid_t wanted = rules_.reaps_orphans ? -1 : child_;
    for (pid_t ended = 0; (ended = ::waitpid(wanted, &status, WNOHANG)) > 0;) {
      if (ended == child_) of_child = status;
    }
    return of_child;
  }

  // Absent: the child must be restarted.
  [[nodiscard]] std::optional<int> final_status(int status) const {
    const bool may_restart = rules_.restarts && !stopping_;
    if (WIFSIGNALED(status))
      return may_restart ? std::nullopt : std::optional(128 + WTERMSIG(status));
    int code = WEXITSTATUS(status);
    // A library can end the process with any status, and send it SIGTERM. A stop that is meant
    // reaches the supervisor, too: a terminal and systemd signal all processes. Only the child
    // knows whether its terminal is gone.
    if (code == kExitClean && !said_hung_up_ && !stopping_) code = kExitPluginLeft;
    const bool by_library = code == kExitHung || code == kExitPluginLeft;
    // After it was ready, the reason of a failure may pass: an address that is not free yet, a full
    // disk, a class file that was being changed when the server crashed.
    const bool is_crash = by_library || (code != kExitClean && was_ready_);
    return is_crash && may_restart ? std::nullopt : std::optional(code);
  }

  // False: SIGTERM or SIGINT came meanwhile.
  bool pause(int status, milliseconds uptime) {
    const milliseconds wait = pacing_.wait_after_crash(uptime);
    const std::string cause = WIFSIGNALED(status) ? signal_text(WTERMSIG(status))
                                                  : "status " + std::to_string(WEXITSTATUS(status));
    logger_.write(LogLevel::kError, "supervisor.restart",
                  {{"cause", cause},
                   {"uptime_ms", uptime.count()},
                   {"wait_ms", wait.count()},
                   {"restarts", ++restarts_}});
    const SteadyClock::time_point deadline = SteadyClock::now() + wait;
    while (const int number = signals_.wait_until(deadline).si_signo) {
      if (number == SIGTERM || number == SIGINT) return false;
      (void)reap();
    }
    return true;
  }

  const AwaitedSignals signals_;
  std::vector<std::string> texts_;
  std::vector<char*> arguments_;  // of the child; into texts_
  const SupervisorRules rules_;
  Logger& logger_;
  RestartPacing pacing_;
  SteadyClock::time_point started_;
  pid_t child_ = -1;
  int words_pipe_ = -1;        // the child writes kReady and kHungUp to it
  bool was_ready_ = false;     // one of the children was ready
  bool said_hung_up_ = false;  // the last child has stopped because its terminal is gone
  bool stopping_ = false;
  int restarts_ = 0;
};

}  // namespace

int supervise(const std::vector<std::string>& arguments, const SupervisorRules& rules,
              Logger& logger) {
  return Supervisor(arguments, rules, logger).run();
}

bool adopts_orphans() {
  int is_subreaper = 0;
  ::prctl(PR_GET_CHILD_SUBREAPER, &is_subreaper);
  return ::getpid() == 1 || is_subreaper != 0;
}

std::vector<std::string> unsupervised(int argc, const char* const* argv) {
  std::vector<std::string> arguments;
  for (int i = 1; i < argc; ++i) {
    if (argv[i] != kFlag) arguments.emplace_back(argv[i]);
  }
  return arguments;
}

SupervisedServer::SupervisedServer(int descriptor) : descriptor_(descriptor) {
  if (descriptor_ < 0) return;
  ::fcntl(descriptor_, F_SETFD, FD_CLOEXEC);
  ::prctl(PR_SET_NAME, "hearth");  // it was started as "exe"
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  // The supervisor may have ended before that: then the other end of the pipe is closed.
  pollfd pipe{.fd = descriptor_, .events = 0, .revents = 0};
  if (::poll(&pipe, 1, 0) != 0) ::_exit(kExitFailed);
}

SupervisedServer::~SupervisedServer() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void SupervisedServer::tell_ready() {
  tell(kReady);
}

void SupervisedServer::tell_hung_up() {
  tell(kHungUp);
}

void SupervisedServer::tell(char word) {
  if (descriptor_ < 0) return;
  const ssize_t written = ::write(descriptor_, &word, 1);
  static_cast<void>(written);  // a failure: the supervisor is gone, and so this process ends
}

}  // namespace hearth::server
