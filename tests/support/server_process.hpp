#pragma once
// The real binary as a child process: started, watched, signalled, reaped.

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::testing {

// How a process ended: exit() with a status, or a signal.
struct Ending {
  int status = -1;  // -1: by a signal
  int signal = 0;   // 0: by exit()

  bool operator==(const Ending&) const = default;
};

// Promises  No wait is endless: after kPatience it throws std::runtime_error with all output of the
//           process. After the destructor the process is gone, and reaped.
// Threads   One; only signal() may be called from any thread while the object lives.
class ServerProcess {
 public:
  // Generous: the machine may be slow, and the binary instrumented. No successful test waits that
  // long.
  static constexpr std::chrono::seconds kPatience{30};

  // Runs a command; the first argument is the program, looked up in PATH. Its current directory is
  // `directory`.
  explicit ServerProcess(const std::vector<std::string>& command,
                         const std::filesystem::path& directory = "/");
  ~ServerProcess();
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

  // Waits for its next line on stdout, and returns it.
  std::string wait_for_line();

  // Waits for the line that says that the server serves; from a supervisor, for so many of these
  // lines. Throws if the process ends instead.
  void wait_until_ready(std::size_t times = 1);
  // The port in the last of these lines.
  [[nodiscard]] std::uint16_t port() const { return port_; }

  // From now on the log is a pipe that is full and is never read.
  void block_log();

  // Waits until the log holds `text`, so many times.
  void wait_for_log(std::string_view text, std::size_t times = 1);

  [[nodiscard]] pid_t pid() const { return pid_; }
  void signal(int number) const;

  // Waits for the end, and collects all output (but nothing of a blocked log).
  Ending wait(std::chrono::seconds patience = kPatience);
  // SIGKILL and wait(): no handler runs, nothing is flushed.
  Ending kill();
  // SIGTERM and wait().
  Ending stop();

  // Its output, as far as a wait has collected it.
  [[nodiscard]] const std::string& out() const { return out_; }
  [[nodiscard]] const std::string& log() const { return log_; }

 private:
  using Deadline = std::chrono::steady_clock::time_point;

  // Reads what there is, waiting for it until `deadline`. False: both streams are at their end.
  bool collect(Deadline deadline);
  [[noreturn]] void give_up(const std::string& why) const;

  std::atomic<pid_t> pid_ = -1;  // -1 once reaped
  int out_pipe_ = -1;
  int log_pipe_ = -1;
  bool log_blocked_ = false;
  std::string out_;
  std::size_t lines_end_ = 0;  // of the lines that wait_for_line() has returned
  std::string log_;
  std::uint16_t port_ = 0;
};

}  // namespace hearth::testing
