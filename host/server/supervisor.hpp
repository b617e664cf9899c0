#pragma once
// hearth serve --supervised: a process whose only work is that the server runs.

#include "base/logger.hpp"

#include <string>
#include <vector>

namespace hearth::server {

// Runs this program again, as a child, with `arguments` (those after the program's name, without
// --supervised), and starts it anew at once when it crashes: ends by a signal, or with a failure
// after it has once been ready. Restarts that follow each other closely are paced
// (restart_pacing.hpp). Returns the status to end with: the child's, or 128 and the number of the
// signal that ended it while it was stopping; kExitFailed if it cannot be started.
//
// Promises   SIGTERM and SIGINT are passed on, and what the child then ends with is the end. While
//            it waits for a restart they end it with kExitClean. SIGHUP is passed on.
//            Mistakes are not repeated: a failure before the server was ever ready is the end. Once
//            it was, every failure is tried again: files may have been changed while it ran, and
//            will be mended.
//            A server that ends cleanly without being asked to stop (somebody has signalled it
//            directly) is the end, too. The child is told to stop (SIGTERM) when this process is
//            gone: it never goes on unnoticed. Each start and restart is logged
//            (supervisor.started, supervisor.restart with its cause).
// Threads    The calling one, which must be the only one of the process, but for those that block
//            all signals (the log's writer). Takes its signals until it returns.
[[nodiscard]] int supervise(const std::vector<std::string>& arguments, Logger& logger);

// The arguments of the child of a process that was started with these.
[[nodiscard]] std::vector<std::string> unsupervised(int argc, const char* const* argv);

// The option with which supervise() tells a server the descriptor for SupervisedServer. Not for
// people.
inline constexpr const char* kSupervisorOption = "--supervisor-descriptor";

// The server's end: makes the process end with its supervisor, and tells that one when clients can
// connect. Does nothing for a server that has none (descriptor -1).
//   Threads  The main one.
class SupervisedServer {
 public:
  // Returns only if the supervisor lives; otherwise the process ends here: nobody waits for it.
  explicit SupervisedServer(int descriptor);
  ~SupervisedServer();
  SupervisedServer(const SupervisedServer&) = delete;
  SupervisedServer& operator=(const SupervisedServer&) = delete;

  void tell_ready();

 private:
  int descriptor_;
};

}  // namespace hearth::server
