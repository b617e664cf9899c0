#include "plugins/admission/trial_process.hpp"

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/file_descriptor.hpp"
#include "base/files.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <optional>
#include <string_view>
#include <utility>

#include <poll.h>
#include <spawn.h>

namespace hearth::plugins {
namespace {

using std::chrono::milliseconds;
using SteadyClock = std::chrono::steady_clock;

// Pipes get numbers above the descriptors that the child gets: then no dup2 overwrites a pipe.
constexpr int kFirstFreeDescriptor = 10;
constexpr std::size_t kMaxKeptBytes = std::size_t{16} << 10;

struct Pipe {
  FileDescriptor read;
  FileDescriptor write;
};

std::optional<Pipe> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return std::nullopt;
  Pipe pipe{.read = FileDescriptor(ends[0]), .write = FileDescriptor(ends[1])};
  pipe.write = FileDescriptor(::fcntl(ends[1], F_DUPFD_CLOEXEC, kFirstFreeDescriptor));
  const bool nonblocking = ::fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0;
  if (!pipe.write.is_open() || !nonblocking) return std::nullopt;
  return pipe;
}

// The end of a pipe's output: the reason for a crash is there.
class Intake {
 public:
  explicit Intake(FileDescriptor descriptor) : descriptor_(std::move(descriptor)) {}

  [[nodiscard]] bool is_open() const { return descriptor_.is_open(); }
  [[nodiscard]] int descriptor() const { return descriptor_.get(); }
  [[nodiscard]] const std::string& text() const { return text_; }

  // Reads without waiting, a bounded amount at most: a library that prints for ever must not keep
  // the caller from checking the time limit.
  void drain() {
    constexpr int kRounds = 64;
    std::array<char, 4096> buffer;
    for (int round = 0; round < kRounds && is_open(); ++round) {
      const ssize_t n = ::read(descriptor_.get(), buffer.data(), buffer.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0 && errno == EAGAIN) return;
      if (n <= 0) return descriptor_.reset();
      text_.append(buffer.data(), static_cast<std::size_t>(n));
      if (text_.size() > kMaxKeptBytes) text_.erase(0, text_.size() - kMaxKeptBytes);
    }
  }

 private:
  FileDescriptor descriptor_;
  std::string text_;
};

// The parts of posix_spawn that must be freed.
class SpawnSetup {
 public:
  SpawnSetup() {
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawnattr_init(&attributes);
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

// Starts the child. 0, or the error number.
int start_child(const TrialOptions& options, const Pipe& verdict, const Pipe& output,
                pid_t& child) {
  SpawnSetup setup;
  int error = 0;
  const auto also = [&error](int result) {
    if (error == 0) error = result;
  };
  also(::posix_spawn_file_actions_addopen(&setup.actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0));
  also(::posix_spawn_file_actions_adddup2(&setup.actions, output.write.get(), STDOUT_FILENO));
  also(::posix_spawn_file_actions_adddup2(&setup.actions, output.write.get(), STDERR_FILENO));
  also(::posix_spawn_file_actions_adddup2(&setup.actions, verdict.write.get(), kVerdictDescriptor));
  int first_unknown = kVerdictDescriptor + 1;
  if (options.given >= 0) {
    also(::posix_spawn_file_actions_adddup2(&setup.actions, options.given, kGivenDescriptor));
    first_unknown = kGivenDescriptor + 1;
  }
  // Closes sockets and files that were opened without close-on-exec.
  also(::posix_spawn_file_actions_addclosefrom_np(&setup.actions, first_unknown));

  // A process group of its own, so that its children can be killed with it. No signal is blocked.
  sigset_t none{};
  sigset_t all{};
  ::sigemptyset(&none);
  ::sigfillset(&all);
  also(::posix_spawnattr_setflags(
      &setup.attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF));
  also(::posix_spawnattr_setpgroup(&setup.attributes, 0));
  also(::posix_spawnattr_setsigmask(&setup.attributes, &none));
  also(::posix_spawnattr_setsigdefault(&setup.attributes, &all));
  if (error != 0) return error;

  std::vector<std::string> texts = options.arguments;
  std::string program = options.program.native();
  std::vector<char*> arguments = {program.data()};
  for (std::string& text : texts) arguments.push_back(text.data());
  arguments.push_back(nullptr);
  // Each thread's cache of malloc counts as memory that is taken, up to seven blocks of each size.
  // The child compares what is taken before and after.
  std::string tunables = "GLIBC_TUNABLES=glibc.malloc.tcache_count=0";
  std::vector<char*> variables = {tunables.data()};
  for (char** variable = environ; *variable != nullptr; ++variable) {
    if (!std::string_view(*variable).starts_with("GLIBC_TUNABLES=")) variables.push_back(*variable);
  }
  variables.push_back(nullptr);
  return ::posix_spawn(&child, program.c_str(), &setup.actions, &setup.attributes, arguments.data(),
                       variables.data());
}

// Whether the child has ended. It must still be reaped.
bool has_ended(pid_t child) {
  siginfo_t status{};
  const int result =
      ::waitid(P_PID, static_cast<id_t>(child), &status, WEXITED | WNOHANG | WNOWAIT);
  return result == 0 && status.si_pid == child;
}

// Kills the child and its own children, and returns its status as waitpid does.
int reap(pid_t child) {
  // Until the child is reaped, no other process gets its id.
  ::kill(-child, SIGKILL);
  ::kill(child, SIGKILL);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

void wait_for_news(Intake& verdict, Intake& output, milliseconds limit) {
  std::array<pollfd, 2> wanted{};
  nfds_t count = 0;
  for (const Intake* intake : {&verdict, &output}) {
    if (intake->is_open())
      wanted[count++] = {.fd = intake->descriptor(), .events = POLLIN, .revents = 0};
  }
  // With both pipes closed nothing wakes poll(): look again soon.
  const milliseconds longest = count == 0 ? milliseconds(2) : milliseconds(20);
  ::poll(wanted.data(), count, static_cast<int>(std::min(longest, limit).count()));
  verdict.drain();
  output.drain();
}

}  // namespace

TrialOutcome run_trial(const TrialOptions& options) {
  auto verdict_pipe = make_pipe();
  auto output_pipe = make_pipe();
  TrialOutcome outcome{
      .not_started = {}, .time_limit = options.time_limit, .verdict = {}, .output = {}};
  if (!verdict_pipe || !output_pipe) {
    outcome.not_started = "no pipe: " + system_text(errno);
    return outcome;
  }
  pid_t child = -1;
  if (const int error = start_child(options, *verdict_pipe, *output_pipe, child); error != 0) {
    outcome.not_started = options.program.native() + ": " + system_text(error);
    return outcome;
  }
  verdict_pipe->write.reset();
  output_pipe->write.reset();
  Intake verdict(std::move(verdict_pipe->read));
  Intake output(std::move(output_pipe->read));

  const auto deadline = SteadyClock::now() + options.time_limit;
  while (!has_ended(child)) {
    const auto left = std::chrono::ceil<milliseconds>(deadline - SteadyClock::now());
    if (left <= milliseconds(0)) {
      outcome.in_time = false;
      break;
    }
    wait_for_news(verdict, output, left);
  }
  outcome.status = reap(child);
  verdict.drain();
  output.drain();
  outcome.verdict = verdict.text();
  outcome.output = output.text();
  return outcome;
}

std::vector<Json> TrialOutcome::lines() const {
  constexpr int kDepth = 4;
  std::vector<Json> lines;
  for (std::string_view rest = verdict; !rest.empty();) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    auto line = parse_json(rest.substr(0, end), kDepth);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line && line->is_object()) lines.push_back(*std::move(line));
  }
  return lines;
}

bool TrialOutcome::has_crashed() const {
  return WIFSIGNALED(status);
}

std::string TrialOutcome::how_it_ended(std::string_view where) const {
  std::string how = "it ended the process (status " + std::to_string(WEXITSTATUS(status)) + ") ";
  if (has_crashed()) how = "it crashed (" + signal_name(WTERMSIG(status)) + ") ";
  if (!in_time) how = "it was still busy after " + std::to_string(time_limit.count()) + " ms ";
  return how + std::string(where) + last_words(output);
}

void be_a_trial() {
  keep_from_children();
  const rlimit no_core{.rlim_cur = 0, .rlim_max = 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // A sanitizer's runtime would turn these into an ordinary exit: the parent could not see a crash.
  for (const int signal : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP}) std::signal(signal, SIG_DFL);
}

void write_verdict(const Json& line) {
  const int descriptor =
      ::fcntl(kVerdictDescriptor, F_GETFD) >= 0 ? kVerdictDescriptor : STDOUT_FILENO;
  (void)write_all(descriptor, dump_json(line) + "\n");  // fails when the parent is gone
}

std::string signal_name(int signal) {
  const char* const name = ::sigabbrev_np(signal);
  return name != nullptr ? "SIG" + std::string(name) : "signal " + std::to_string(signal);
}

std::string last_words(std::string_view output) {
  constexpr std::size_t kMaxToldBytes = 200;
  while (!output.empty() && (output.back() == '\n' || output.back() == ' '))
    output.remove_suffix(1);
  if (output.empty()) return {};
  if (output.size() > kMaxToldBytes) output.remove_prefix(output.size() - kMaxToldBytes);
  return "; it said: " + quote_text(output, 4 * kMaxToldBytes);
}

}  // namespace hearth::plugins
