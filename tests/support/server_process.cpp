#include "support/server_process.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <stdexcept>
#include <system_error>
#include <utility>

#include <poll.h>
#include <signal.h>
#include <spawn.h>

namespace hearth::testing {
namespace {

constexpr std::string_view kReady = "hearth ready: listening on ";
// A failed test that prints this is not run again (packaging/test-results.py).
constexpr const char* kSomeServerWasKilled = "a server was killed";

// Both ends close when a program is started; the child gets its end under another number.
std::array<int, 2> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    throw std::system_error(errno, std::generic_category(), "pipe");
  }
  return ends;
}

// Appends what can be read now; closes the descriptor at the end of the stream.
void read_some(int& descriptor, std::string& text) {
  std::array<char, 16384> chunk{};
  const ssize_t got = ::read(descriptor, chunk.data(), chunk.size());
  if (got > 0) {
    text.append(chunk.data(), static_cast<std::size_t>(got));
  } else if (got == 0) {
    ::close(std::exchange(descriptor, -1));
  }
}

}  // namespace

ServerProcess::ServerProcess(const std::vector<std::string>& command,
                             const std::filesystem::path& directory) {
  const auto [out_read, out_write] = make_pipe();
  const auto [log_read, log_write] = make_pipe();
  std::vector<char*> arguments;
  for (const std::string& argument : command)
    arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, out_write, STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, log_write, STDERR_FILENO);
  ::posix_spawn_file_actions_addchdir_np(&actions, directory.c_str());
  pid_t pid = -1;
  const int error =
      ::posix_spawnp(&pid, arguments[0], &actions, nullptr, arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(out_write);
  ::close(log_write);
  // pipe() gives both ends at once, so these are set here.
  // NOLINTBEGIN(cppcoreguidelines-prefer-member-initializer)
  out_pipe_ = out_read;
  log_pipe_ = log_read;
  // NOLINTEND(cppcoreguidelines-prefer-member-initializer)
  if (error != 0) {
    throw std::system_error(error, std::generic_category(), command.front());
  }
  pid_ = pid;
}

ServerProcess::~ServerProcess() {
  if (const pid_t pid = pid_.exchange(-1); pid > 0) {
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }
  if (log_.find("supervisor.restart") != std::string::npos) std::puts(kSomeServerWasKilled);
  if (out_pipe_ >= 0) ::close(out_pipe_);
  if (log_pipe_ >= 0) ::close(log_pipe_);
}

std::string ServerProcess::wait_for_line() {
  const Deadline deadline = std::chrono::steady_clock::now() + kPatience;
  std::size_t end = 0;
  while ((end = out_.find('\n', lines_end_)) == std::string::npos) {
    if (!collect(deadline)) give_up("the process ended before it said what was expected");
  }
  const std::size_t begin = std::exchange(lines_end_, end + 1);
  return out_.substr(begin, end - begin);
}

void ServerProcess::wait_until_ready(std::size_t times) {
  lines_end_ = 0;
  std::string line;
  for (std::size_t i = 0; i < times; ++i) line = wait_for_line();
  if (!line.starts_with(kReady)) give_up("the server began with another line");
  port_ = static_cast<std::uint16_t>(std::stoi(line.substr(line.rfind(':') + 1)));
}

void ServerProcess::block_log() {
  log_blocked_ = true;
  const std::string path = "/proc/self/fd/" + std::to_string(log_pipe_);
  const int filler = ::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
  if (filler < 0) throw std::system_error(errno, std::generic_category(), path);
  const std::array<char, 4096> piece{};
  while (::write(filler, piece.data(), piece.size()) > 0) {
  }
  ::close(filler);
}

void ServerProcess::wait_for_log(std::string_view text, std::size_t times) {
  const Deadline deadline = std::chrono::steady_clock::now() + kPatience;
  const auto found = [this, text] {
    std::size_t count = 0;
    for (std::size_t at = log_.find(text); at != std::string::npos; at = log_.find(text, at + 1))
      ++count;
    return count;
  };
  while (found() < times) {
    if (!collect(deadline))
      give_up("the process ended without logging \"" + std::string(text) + "\"");
  }
}

void ServerProcess::signal(int number) const {
  if (const pid_t pid = pid_; pid > 0) ::kill(pid, number);
}

Ending ServerProcess::wait(std::chrono::seconds patience) {
  const Deadline deadline = std::chrono::steady_clock::now() + patience;
  // Its streams end with it: nothing else holds them.
  while (collect(deadline)) {
  }
  int status = 0;
  ::waitpid(pid_.exchange(-1), &status, 0);
  if (!WIFSIGNALED(status)) return {.status = WEXITSTATUS(status), .signal = 0};
  std::puts(kSomeServerWasKilled);
  return {.status = -1, .signal = WTERMSIG(status)};
}

Ending ServerProcess::kill() {
  signal(SIGKILL);
  return wait();
}

Ending ServerProcess::stop() {
  signal(SIGTERM);
  return wait();
}

bool ServerProcess::collect(Deadline deadline) {
  const int log = log_blocked_ ? -1 : log_pipe_;
  if (out_pipe_ < 0 && log < 0) return false;
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
  if (left.count() <= 0) give_up("nothing more came from the process");
  std::array<pollfd, 2> streams{pollfd{out_pipe_, POLLIN, 0}, pollfd{log, POLLIN, 0}};
  if (::poll(streams.data(), streams.size(), static_cast<int>(left.count())) <= 0) return true;
  if (streams[0].revents != 0) read_some(out_pipe_, out_);
  if (streams[1].revents != 0) read_some(log_pipe_, log_);
  return true;
}

void ServerProcess::give_up(const std::string& why) const {
  throw std::runtime_error(why + "\n--- stdout ---\n" + out_ + "\n--- stderr ---\n" + log_);
}

}  // namespace hearth::testing
