#include "loader/probe.hpp"

#include "base/escape.hpp"
#include "json/json.hpp"
#include "loader/file_descriptor.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include <poll.h>
#include <spawn.h>

namespace hearth::loader {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr int kVerdictDescriptor = 3;
// Pipes are moved above the descriptors that the child gets, so that no dup2 overwrites one.
constexpr int kFirstFreeDescriptor = 10;
constexpr std::size_t kMaxKeptBytes = std::size_t{16} << 10;
constexpr std::size_t kMaxToldBytes = 200;

std::string system_text(int error) {
  return std::error_code(error, std::generic_category()).message();
}

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

// What came out of one pipe: the end of it, since that is where the reason for a crash stands.
class Intake {
 public:
  explicit Intake(FileDescriptor descriptor) : descriptor_(std::move(descriptor)) {}

  [[nodiscard]] bool is_open() const { return descriptor_.is_open(); }
  [[nodiscard]] int descriptor() const { return descriptor_.get(); }
  [[nodiscard]] const std::string& text() const { return text_; }

  // Takes what is there without waiting; at most a bounded amount, so that a library that prints for ever
  // cannot keep us from looking at the clock.
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

// The parts of posix_spawn that must be given back.
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
int start(const std::filesystem::path& library, const ProbeOptions& options, const Pipe& verdict,
          const Pipe& output, pid_t& child) {
  SpawnSetup setup;
  int error = 0;
  const auto also = [&error](int result) {
    if (error == 0) error = result;
  };
  also(::posix_spawn_file_actions_addopen(&setup.actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0));
  also(::posix_spawn_file_actions_adddup2(&setup.actions, output.write.get(), STDOUT_FILENO));
  also(::posix_spawn_file_actions_adddup2(&setup.actions, output.write.get(), STDERR_FILENO));
  also(::posix_spawn_file_actions_adddup2(&setup.actions, verdict.write.get(), kVerdictDescriptor));
  // Sockets and files of ours that were opened without close-on-exec.
  also(::posix_spawn_file_actions_addclosefrom_np(&setup.actions, kVerdictDescriptor + 1));

  // A group of its own, so that whatever it starts can be ended with it; and no signal of ours blocked.
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

  std::string program = options.program.native();
  std::string argument = kProbeArgument;
  std::string file = library.native();
  std::array<char*, 4> arguments = {program.data(), argument.data(), file.data(), nullptr};
  return ::posix_spawn(&child, program.c_str(), &setup.actions, &setup.attributes, arguments.data(),
                       environ);
}

// Whether the child has ended; it stays to be reaped.
bool has_ended(pid_t child) {
  siginfo_t status{};
  const int result =
      ::waitid(P_PID, static_cast<id_t>(child), &status, WEXITED | WNOHANG | WNOWAIT);
  return result == 0 && status.si_pid == child;
}

// Ends the child with all that it started, and gives its status as waitpid does.
int reap(pid_t child) {
  // Before it is reaped its number cannot belong to anybody else.
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
  // With both pipes closed there is nothing to wake us: look again soon.
  const milliseconds longest = count == 0 ? milliseconds(2) : milliseconds(20);
  ::poll(wanted.data(), count, static_cast<int>(std::min(longest, limit).count()));
  verdict.drain();
  output.drain();
}

// The child's lines on the verdict pipe.
struct Story {
  std::string step = "start";  // the last one that began
  bool accepted = false;
  std::optional<Finding> refused;
};

std::string text_member(const Json& line, const char* key) {
  const auto found = line.find(key);
  return found != line.end() && found->is_string() ? found->get<std::string>() : std::string();
}

Story read_story(std::string_view lines) {
  Story story;
  while (!lines.empty()) {
    const std::size_t end = std::min(lines.find('\n'), lines.size());
    const auto line = parse_json(lines.substr(0, end), 4);
    lines.remove_prefix(std::min(end + 1, lines.size()));
    if (!line || !line->is_object()) continue;  // not from us
    if (const std::string step = text_member(*line, "step"); !step.empty()) story.step = step;
    const std::string verdict = text_member(*line, "verdict");
    if (verdict == "accepted") story.accepted = true;
    if (verdict != "refused") continue;
    const std::string id = text_member(*line, "rule");
    const bool known = std::ranges::find(rules(), id, &Rule::id) != rules().end();
    story.refused = finding(known ? id : "P1", text_member(*line, "reason"));
  }
  return story;
}

std::string_view doing(std::string_view step) {
  if (step == "load") return "while it was loaded and its constructors ran";
  if (step == "init") return "in init()";
  if (step == "classes") return "while its classes were read";
  if (step == "deinit") return "in deinit() or its destructors";
  if (step == "end") return "after it had been unloaded";
  return "before it was loaded";
}

// What the library printed last, if that says something.
std::string last_words(const std::string& output) {
  std::string_view text = output;
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
  if (text.empty()) return {};
  if (text.size() > kMaxToldBytes) text.remove_prefix(text.size() - kMaxToldBytes);
  return "; it said: " + quote_text(text, 4 * kMaxToldBytes);
}

std::string signal_name(int signal) {
  const char* const name = ::sigabbrev_np(signal);
  return name != nullptr ? "SIG" + std::string(name) : "signal " + std::to_string(signal);
}

std::optional<Finding> judge(const Story& story, int status, const std::string& output) {
  const std::string where(doing(story.step));
  if (WIFSIGNALED(status)) {
    return finding(
        "P1", "it crashed (" + signal_name(WTERMSIG(status)) + ") " + where + last_words(output));
  }
  if (story.refused) {
    Finding refused = *story.refused;
    if (refused.rule == "L4") refused.reason += last_words(output);
    return refused;
  }
  if (story.accepted) return std::nullopt;
  return finding("P1", "it ended the process (status " + std::to_string(WEXITSTATUS(status)) +
                           ") " + where + last_words(output));
}

}  // namespace

std::optional<Finding> probe_library(const std::filesystem::path& library,
                                     const ProbeOptions& options) {
  auto verdict_pipe = make_pipe();
  auto output_pipe = make_pipe();
  if (!verdict_pipe || !output_pipe) {
    return finding("P1", "it cannot be tried: no pipe: " + system_text(errno));
  }
  pid_t child = -1;
  if (const int error = start(library, options, *verdict_pipe, *output_pipe, child); error != 0) {
    return finding("P1",
                   "it cannot be tried: " + options.program.native() + ": " + system_text(error));
  }
  verdict_pipe->write.reset();
  output_pipe->write.reset();
  Intake verdict(std::move(verdict_pipe->read));
  Intake output(std::move(output_pipe->read));

  const auto deadline = Clock::now() + options.time_limit;
  bool in_time = true;
  while (!has_ended(child)) {
    const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now());
    if (left <= milliseconds(0)) {
      in_time = false;
      break;
    }
    wait_for_news(verdict, output, left);
  }
  const int status = reap(child);
  verdict.drain();
  output.drain();
  const Story story = read_story(verdict.text());
  if (!in_time) {
    return finding("P2", "it was still busy after " + std::to_string(options.time_limit.count()) +
                             " ms " + std::string(doing(story.step)) + last_words(output.text()));
  }
  return judge(story, status, output.text());
}

}  // namespace hearth::loader
