#include "diagnosis/crash_recorder.hpp"

#include "base/bounded_write.hpp"
#include "diagnosis/call_stack.hpp"
#include "diagnosis/code_ranges.hpp"
#include "diagnosis/crash_record.hpp"
#include "diagnosis/crash_stack.hpp"
#include "diagnosis/exit_status.hpp"
#include "telemetry/log_queue.hpp"

#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <span>
#include <string_view>
#include <utility>

#include <ucontext.h>

namespace hearth::diagnosis {
namespace {

// The record's file, which a handler reads; -1: none.
constinit std::atomic<int> record_descriptor{-1};
constinit std::atomic<bool> is_recording{false};
constinit std::atomic<pid_t> recorded_process{0};  // children that a library forks are not recorded
constinit std::atomic<bool> is_recorded{false};
constinit std::atomic<pid_t> recording_thread{0};
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<bool>::is_always_lock_free);

// How long to wait for a record that another thread is writing.
constexpr time_t kPatienceSeconds = 2;

// How long to wait for a standard error that nothing reads. Twice this is less than the time above,
// so that the crash stays the reason of the end.
constexpr std::chrono::milliseconds kLogPatience{400};

std::string_view name_of(int signal) {
  switch (signal) {
    case SIGSEGV: return "SIGSEGV";
    case SIGBUS: return "SIGBUS";
    case SIGILL: return "SIGILL";
    case SIGFPE: return "SIGFPE";
    case SIGABRT: return "SIGABRT";
    default: return "signal";
  }
}

void write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

bool is_wanted() {
  return is_recording.load() && recorded_process.load() == ::getpid();
}

// Async-signal-safe. False: another thread records its crash, or has done so.
bool record(std::string_view reason, const RunningCall* call, std::string_view stack = {}) {
  if (!is_wanted() || is_recorded.exchange(true)) return false;
  recording_thread = ::gettid();
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  CrashReport report{.reason = reason,
                     .time_ms = std::int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000,
                     .pid = ::getpid(),
                     .library = {},
                     .sha256 = {},
                     .generation = 0,
                     .agent_class = {},
                     .agent = {},
                     .agent_digest = 0,
                     .work = {},
                     .call = {},
                     .method = {},
                     .event_number = 0,
                     .trace = {},
                     .running_ms = 0,
                     .stack = stack};
  TraceText trace{};
  if (call != nullptr) {
    report.library = call->owner->library;
    report.sha256 = call->owner->sha256;
    report.generation = call->owner->generation;
    report.agent_class = call->owner->agent_class;
    report.agent = call->agent();
    report.agent_digest = call->agent_digest;
    report.work = call->work;
    report.call = call->call;
    report.method = call->method();
    report.event_number = call->event.number;
    report.trace = write_trace(call->event, trace);
    report.running_ms = (call_clock() - call->since).count() / 1'000'000;
  }
  std::array<char, kMaxCrashRecord>
      buffer;  // not initialised: a handler's stack is small, and its time is short
  write_all(record_descriptor.load(), format_crash(report, buffer));
  await_log_written(kLogPatience);
  write_within(STDERR_FILENO, describe_crash(report, buffer), kLogPatience);
  return true;
}

// Async-signal-safe. The last step: walking a broken stack may end the process. The host's own
// functions, which called the library, are left out.
void record_stack(const ucontext_t* context) {
  std::array<std::uintptr_t, kMaxCrashFrames> buffer;
  const std::span<const std::uintptr_t> frames = walk_crashed_stack(context, buffer);
  std::size_t shown = frames.size();
  while (shown > 0 && find_code_owner(frames[shown - 1]) == nullptr) --shown;
  if (shown == 0) shown = frames.size();  // no frame is a library's
  std::array<char, kMaxCrashFrame> line;
  for (const std::uintptr_t address : frames.first(shown))
    write_all(record_descriptor.load(), format_frame(find_place(address), line));
}

// Another thread writes its record and then ends the process. It may be stuck, so the wait is not
// much longer than writing takes.
void wait_for_end() {
  const timespec patience{.tv_sec = kPatienceSeconds, .tv_nsec = 0};
  timespec left = patience;
  while (::nanosleep(&left, &left) != 0 && errno == EINTR) {
  }
}

struct Registers {
  std::uintptr_t code;
  std::uintptr_t stack;
};

Registers registers_of(const ucontext_t& context) {
#if defined(__x86_64__)
  const auto& registers = context.uc_mcontext.gregs;
  return {.code = static_cast<std::uintptr_t>(registers[REG_RIP]),
          .stack = static_cast<std::uintptr_t>(registers[REG_RSP])};
#elif defined(__aarch64__)
  return {.code = context.uc_mcontext.pc, .stack = context.uc_mcontext.sp};
#endif
}

// The library to whose code the stack leads back: the first word on the stack that is an address in
// a library. Reads through the system, which returns an error for unmapped memory.
const CallOwner* owner_of_stack(std::uintptr_t stack) {
  constexpr std::size_t kMaxBytes = std::size_t{64} << 10;
  std::array<std::uintptr_t, 64> words{};
  stack &= ~(sizeof(std::uintptr_t) - 1);
  for (std::size_t at = 0; at < kMaxBytes; at += sizeof words) {
    const iovec ours{.iov_base = words.data(), .iov_len = sizeof words};
    const iovec theirs{
        .iov_base = reinterpret_cast<void*>(stack + at),  // NOLINT(performance-no-int-to-ptr)
        .iov_len = sizeof words};
    const ssize_t size = ::process_vm_readv(::getpid(), &ours, 1, &theirs, 1, 0);
    if (size <= 0) return nullptr;
    for (std::size_t i = 0; i < static_cast<std::size_t>(size) / sizeof(std::uintptr_t); ++i) {
      if (const CallOwner* const owner = find_code_owner(words[i])) return owner;
    }
  }
  return nullptr;
}

// A crash outside of any call.
bool find_owner(const ucontext_t& context, RunningCall& into) {
  const Registers registers = registers_of(context);
  const CallOwner* owner = find_code_owner(registers.code);
  // Calls that have returned leave addresses behind on the stacks of the host's threads. Only the
  // stack of a library's own thread proves something.
  if (owner == nullptr && !has_call_record()) owner = owner_of_stack(registers.stack);
  if (owner == nullptr) return false;
  into.owner = owner;
  into.call = kOwnThread;
  into.since = call_clock();
  return true;
}

void on_crash(int signal, siginfo_t* info, void* context) {
  leave_stack_walk(*info);
  const int kept_errno = errno;
  RunningCall call;
  const bool in_call =
      find_running_call(call) || find_owner(*static_cast<const ucontext_t*>(context), call);
  if (record(name_of(signal), in_call ? &call : nullptr)) {
    record_stack(static_cast<const ucontext_t*>(context));
  } else if (is_wanted() && recording_thread != ::gettid()) {
    // Another thread is crashing too. It ends the process when it has written its record. If that
    // thread is this one, the handler was restored after the record (plugins/admission/
    // process_guard.hpp does so when a library goes), and the process ends now.
    for (;;) ::pause();
  }
  struct sigaction standard{};
  standard.sa_handler = SIG_DFL;
  ::sigaction(signal, &standard, nullptr);
  // A fault happens again when the handler returns to the instruction. A signal that was sent
  // (abort() sends one) must be sent again; it is delivered when the handler returns.
  if (info->si_code <= 0) ::raise(signal);
  errno = kept_errno;
}

[[noreturn]] void end_process(int status) {
  for (;;) ::syscall(SYS_exit_group, status);
}

// exit() from a library's code would run the host's destructors while other threads use the
// objects, and its status may look like success.
void on_exit_of_process() {
  RunningCall call;
  if (!is_wanted() || !find_running_call(call)) return;
  if (record("exit", &call)) {
    record_stack(nullptr);
  } else {
    wait_for_end();
  }
  end_process(kExitPluginLeft);
}

void watch_exit() {
  static const bool is_registered =
      std::atexit(on_exit_of_process) == 0 && std::at_quick_exit(on_exit_of_process) == 0;
  static_cast<void>(is_registered);  // if it failed, only the record is missing
}

}  // namespace

CrashRecorder::CrashRecorder(const std::filesystem::path& file)
    : file_(file), is_first_(!is_recording.exchange(true)) {
  if (!is_first_) return;
  make_file();
  is_recorded = false;
  recorded_process = ::getpid();
  struct sigaction ours{};
  ours.sa_sigaction = on_crash;
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK;
  ::sigemptyset(&ours.sa_mask);
  // A fault inside the handler ends the process instead of calling the handler again.
  for (const int signal : kSignals) ::sigaddset(&ours.sa_mask, signal);
  for (std::size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &ours, &before_[i]);
  watch_exit();
  prepare_stack_walk();
}

void CrashRecorder::make_file() {
  if (!lacks_file()) return;
  descriptor_ = ::open(file_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
  record_descriptor = descriptor_;
}

CrashRecorder::~CrashRecorder() {
  if (!is_first_) return;
  for (std::size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &before_[i], nullptr);
  record_descriptor = -1;
  is_recording = false;
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  ::unlink(file_.c_str());
}

void CrashRecorder::end_as_hung(const RunningCall& call, std::string_view stack) {
  if (!record(kHung, &call, stack)) wait_for_end();
  end_process(kExitHung);
}

}  // namespace hearth::diagnosis

// The same for the functions that run no handlers: libraries that call them get these instead of
// those of the C library.
extern "C" {
// NOLINTBEGIN(bugprone-reserved-identifier): names of the C library
__attribute__((visibility("default"))) void _exit(int status) {
  hearth::diagnosis::on_exit_of_process();
  hearth::diagnosis::end_process(status);
}
__attribute__((visibility("default"))) void _Exit(int status) noexcept {
  _exit(status);
}
// NOLINTEND(bugprone-reserved-identifier)
}
