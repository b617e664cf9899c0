#include "diagnosis/call_stack.hpp"

#include "base/files.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csetjmp>
#include <string>
#include <string_view>
#include <thread>

#include <ucontext.h>
#include <unwind.h>

namespace hearth::diagnosis {
namespace {

using std::chrono::milliseconds;
using SteadyClock = std::chrono::steady_clock;

// Idle -> kWanted (by capture()) -> kWalking, kDone (by the thread) -> idle (by capture()).
enum Step : std::uint64_t { kIdle, kWanted, kWalking, kDone };
constexpr std::uint64_t kStepCount = 4;

// The one question of the process, and its answer.
struct Question {
  // The question's number * kStepCount + its step. The number keeps a thread that answers late
  // from taking up a question that was put to another thread meanwhile.
  std::atomic<std::uint64_t> state{kIdle};
  std::atomic<std::uint64_t> thread{0};
  std::atomic<std::uint64_t> number{0};
  std::atomic<std::size_t> count{0};
  std::array<std::atomic<std::uintptr_t>, CallStacks::kMaxFrames> frames{};
};
constinit Question question;
constinit std::atomic<bool> is_active{false};
constinit thread_local sigjmp_buf* way_out = nullptr;

// A real-time signal that nothing else here uses. The C library uses the first few.
int stack_signal() {
  return SIGRTMIN + 7;
}

std::uintptr_t interrupted_at(const ucontext_t& context) {
#if defined(__x86_64__)
  return static_cast<std::uintptr_t>(context.uc_mcontext.gregs[REG_RIP]);
#elif defined(__aarch64__)
  return context.uc_mcontext.pc;
#endif
}

struct Walk {
  std::uintptr_t from = 0;  // where the signal interrupted the thread: frames above are the handler
  bool is_there = false;
};

void add_frame(std::uintptr_t address) {
  const std::size_t at = question.count.load(std::memory_order_relaxed);
  question.frames[at].store(address, std::memory_order_relaxed);
  question.count.store(at + 1, std::memory_order_relaxed);
}

_Unwind_Reason_Code on_frame(_Unwind_Context* context, void* given) {
  Walk& walk = *static_cast<Walk*>(given);
  int is_exact = 0;
  const std::uintptr_t address = _Unwind_GetIPInfo(context, &is_exact);
  if (address == 0) return _URC_END_OF_STACK;
  walk.is_there = walk.is_there || address == walk.from;
  if (!walk.is_there) return _URC_NO_REASON;
  // A return address lies after the call instruction, so it may belong to the next function.
  add_frame(is_exact != 0 ? address : address - 1);
  const bool is_full = question.count.load(std::memory_order_relaxed) == CallStacks::kMaxFrames;
  return is_full ? _URC_END_OF_STACK : _URC_NO_REASON;
}

void walk_stack(std::uintptr_t from) {
  Walk walk{.from = from};
  sigjmp_buf here;
  if (sigsetjmp(here, 1) == 0) {
    way_out = &here;
    _Unwind_Backtrace(on_frame, &walk);
  }
  way_out = nullptr;
  if (question.count.load(std::memory_order_relaxed) == 0) add_frame(from);
}

void on_question(int /*signal*/, siginfo_t* /*info*/, void* context) {
  const int kept_errno = errno;
  std::uint64_t state = question.state;
  RunningCall call;
  // The call may have returned by now. The thread may even be a new one that reuses the number of
  // a thread that has ended.
  const bool is_meant = state % kStepCount == kWanted && find_running_call(call) &&
                        call.thread == question.thread.load() &&
                        call.number == question.number.load();
  const std::uint64_t first = state - state % kStepCount;
  if (is_meant && question.state.compare_exchange_strong(state, first + kWalking)) {
    question.count = 0;
    walk_stack(interrupted_at(*static_cast<const ucontext_t*>(context)));
    question.state = first + kDone;
  }
  errno = kept_errno;
}

bool is_debugged() {
  constexpr std::string_view kKey = "\nTracerPid:";
  constexpr std::size_t kMaxStatus = std::size_t{64} << 10;
  const auto status = read_file("/proc/self/status", kMaxStatus);
  const std::size_t at = status ? status->find(kKey) : std::string::npos;
  return at != std::string::npos &&
         std::strtol(status->c_str() + at + kKey.size(), nullptr, 10) != 0;
}

bool wait_until_done() {
  const auto until = SteadyClock::now() + CallStacks::kPatience;
  while (question.state % kStepCount != kDone) {
    if (SteadyClock::now() > until) return false;
    std::this_thread::sleep_for(milliseconds(1));
  }
  return true;
}

_Unwind_Reason_Code stop_at_once(_Unwind_Context* /*context*/, void* /*unused*/) {
  return _URC_END_OF_STACK;
}

}  // namespace

CallStacks::CallStacks() : is_first_(!is_active.exchange(true)), signal_(stack_signal()) {
  if (!is_first_) return;
  // Loads the unwinder and makes its tables. A handler must not do that.
  _Unwind_Backtrace(stop_at_once, nullptr);
  struct sigaction ours{};
  ours.sa_sigaction = on_question;
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
  ::sigemptyset(&ours.sa_mask);
  ::sigaction(signal_, &ours, &before_);
}

CallStacks::~CallStacks() {
  if (!is_first_) return;
  // A signal that is still under way would end the process if it had no handler.
  struct sigaction ignored{};
  ignored.sa_handler = before_.sa_handler == SIG_DFL ? SIG_IGN : before_.sa_handler;
  if (before_.sa_handler == SIG_DFL) {
    ::sigaction(signal_, &ignored, nullptr);
  } else {
    ::sigaction(signal_, &before_, nullptr);
  }
  is_active = false;
}

std::vector<std::uintptr_t> CallStacks::capture(const RunningCall& call) {
  if (!is_first_ || is_debugged()) return {};
  const MutexLock lock(asking_);
  const std::uint64_t before = question.state;
  if (before % kStepCount == kWalking) return {};  // the thread of the last question still walks
  const std::uint64_t first = before - before % kStepCount + kStepCount;
  question.state = first + kIdle;
  question.thread = call.thread;
  question.number = call.number;
  question.state = first + kWanted;
  std::vector<std::uintptr_t> frames;
  if (::syscall(SYS_tgkill, ::getpid(), call.system_thread, signal_) == 0 && !wait_until_done()) {
    std::uint64_t wanted = first + kWanted;
    // Withdraw the question. If that fails, the thread has just begun to walk: wait again.
    if (question.state.compare_exchange_strong(wanted, first + kIdle) || !wait_until_done())
      return {};
  }
  if (question.state != first + kDone) {  // there is no such thread any more
    question.state = first + kIdle;
    return {};
  }
  const std::size_t count = question.count;
  frames.reserve(count);
  for (std::size_t i = 0; i < count; ++i) frames.push_back(question.frames[i]);
  question.state = first + kIdle;
  return frames;
}

void leave_stack_walk(const siginfo_t& fault) noexcept {
  if (way_out == nullptr) return;
  // A fault comes from the kernel. The unwinder may also abort(), which sends the signal to its own
  // thread.
  const bool is_ours =
      fault.si_code > 0 || (fault.si_code == SI_TKILL && fault.si_pid == ::getpid());
  if (is_ours) ::siglongjmp(*way_out, 1);
}

}  // namespace hearth::diagnosis
