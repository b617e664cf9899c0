#pragma once
// hearth serve --supervised: a process that only keeps the server running.

#include "base/logger.hpp"

#include <string>
#include <vector>

namespace hearth::server {

struct SupervisorRules {
  bool restarts = true;        // false: the supervisor ends in whatever way the child ends
  bool reaps_orphans = false;  // only if nothing else in the process waits for children
};

// Runs this program again as a child, with `arguments` (those after the program's name, without
// --supervised), and restarts it after a crash, if the rules say so. Returns the status to end
// with: the child's, or 128 plus the number of the signal that ended the child for the last time;
// kExitFailed if the child cannot be started.
//
// the child ends                            the supervisor
// by a signal                               restarts it
// with a failure, before it was ever ready  ends with its status: the same mistake would come again
// with a failure, after it was ready        restarts it: files may have been changed meanwhile, and
//                                           an operator may correct them
// with kExitHung or kExitPluginLeft         restarts it
// with kExitClean                           restarts it: a library has ended the process, or has
//                                           sent it a signal
// with kExitClean, and has said that its    ends with its status
// terminal is gone (tell_hung_up)
// in any way after SIGTERM or SIGINT to     ends with its status
// the supervisor
//
// Promises   SIGTERM, SIGINT and SIGHUP are passed on to the child, unless they come from it: a
//            library may signal the process group. During the wait for a restart SIGTERM and SIGINT
//            end the supervisor with kExitClean. Restarts that follow each other
//            closely are paced (restart_pacing.hpp). If the supervisor is gone, the child gets
//            SIGTERM. Each start and restart is logged (supervisor.started, supervisor.restart with
//            its cause).
// Threads    The calling one. It must be the only thread of the process, except for threads that
//            block all signals (the log's writer). It takes the process's signals until it returns.
[[nodiscard]] int supervise(const std::vector<std::string>& arguments, const SupervisorRules& rules,
                            Logger& logger);

// Whether the system gives this process the children of others that have ended: it is the first
// process of a container, or was made a subreaper. A server cannot reap them itself, because it
// cannot tell them from children that its libraries wait for: so it runs under supervise().
[[nodiscard]] bool adopts_orphans();

// The arguments of the child, for a process that was started with these.
[[nodiscard]] std::vector<std::string> unsupervised(int argc, const char* const* argv);

// The option by which supervise() passes the descriptor for SupervisedServer. Not for operators.
inline constexpr const char* kSupervisorOption = "--supervisor-descriptor";

// The child's part: ends the process when its supervisor ends, and tells the supervisor when
// clients can connect, and why the server has stopped if the supervisor cannot know. Does nothing
// without a supervisor (descriptor -1).
//   Threads  The main one.
class SupervisedServer {
 public:
  // Returns only if the supervisor lives. Otherwise the process ends here.
  explicit SupervisedServer(int descriptor);
  ~SupervisedServer();
  SupervisedServer(const SupervisedServer&) = delete;
  SupervisedServer& operator=(const SupervisedServer&) = delete;

  void tell_ready();
  // The server has stopped because its terminal is gone. The last step: an end before it counts as
  // a crash.
  void tell_hung_up();

 private:
  void tell(char word);

  int descriptor_;
};

}  // namespace hearth::server
