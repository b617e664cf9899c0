// Ends its process in the way that a request names:
// ?how=segv|overflow|abort|ill|fpe|exit|_exit|quick_exit|vanish|stop|stop_above|thread|loop|hang
//
//   vanish   ends with status 0, by the system call
//   stop     sends its process SIGTERM; stop_above: sends it to the parent of its process
//   thread   crashes in a job on another thread
//   loop     an agent that crashes at each start, and has an alarm that wakes it again
//   hang     never returns
//
// Anything else is answered "ok". With MENDED it does none of this. The option at_start is such a
// word, for each start of an agent.
#include <hearth/agent.hpp>

#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <string>
#include <utility>

namespace {

// So that a compiler cannot see what happens here.
volatile int zero = 0;
int* volatile nowhere = nullptr;

int overflow(int depth) {
  volatile char frame[4096];
  frame[0] = static_cast<char>(depth);
  return zero == 0 ? overflow(depth + 1) + frame[0] : 0;
}

// A sanitizer would stop before the fault that this code makes.
__attribute__((no_sanitize("undefined"))) void crash(const std::string& how) {
#ifdef MENDED
  if (!how.empty()) return;
#endif
  if (how == "segv") *nowhere = 1;
  if (how == "overflow") zero = overflow(0);
  if (how == "abort") std::abort();
  if (how == "ill") __builtin_trap();
  if (how == "fpe") zero = 100 / zero;  // 1 / x would become a comparison
  if (how == "exit") std::exit(0);
  if (how == "_exit") ::_exit(0);
  if (how == "quick_exit") std::quick_exit(0);
  if (how == "vanish") ::syscall(SYS_exit_group, 0);
  if (how == "stop") ::kill(::getpid(), SIGTERM);
  if (how == "stop_above") ::kill(::getppid(), SIGTERM);
  // (Looked at once: a stack that is taken inside a comparison shows less.)
  const volatile bool hangs = how == "hang";
  while (hangs) {
  }
}

}  // namespace

class Crashes : public hearth::Agent {
 public:
  struct State {
    bool loops = false;
    HEARTH_FIELDS(loops)
  };

  struct Options {
    std::string at_start;
    HEARTH_FIELDS(at_start)
  };

  explicit Crashes(Options options) : at_start_(std::move(options.at_start)) {}

  static void methods(hearth::Methods<Crashes>& m) { m.callback("again", &Crashes::again); }

  hearth::Json initial_state() override { return State{}; }

  hearth::Task<void> on_start() override {
    if (state<State>().loops) crash("segv");
    crash(at_start_);
    return {};
  }

  hearth::Task<hearth::Response> on_request(const hearth::Request& request) override {
    const std::string how = request.query("how").value_or("");
    crash(how);
    if (how == "thread") co_await offload([] { crash("segv"); });
    if (how == "loop") {
      set_state(State{.loops = true});
      schedule(std::chrono::duration<double>(0.05), "again", std::string());
    }
    co_return hearth::Response::text("ok");
  }

 private:
  void again(const std::string&) { crash("segv"); }

  std::string at_start_;
};

#ifdef MENDED
HEARTH_PLUGIN("crashes", "1.0.1", Crashes)
#else
HEARTH_PLUGIN("crashes", "1.0.0", Crashes)
#endif
