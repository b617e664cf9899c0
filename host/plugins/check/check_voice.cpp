#include "plugins/check/check_voice.hpp"

#include "json/json.hpp"
#include "plugins/admission/trial_process.hpp"

#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>

namespace hearth::plugins {
namespace {

// A signal handler finds the object only through a global variable.
std::atomic<const GuardedMemory*> guarded_memory{nullptr};

// Uses only functions that are allowed in a signal handler.
void write_all(const char* text, std::size_t size) {
  while (size > 0) {
    const ssize_t n = ::write(kVerdictDescriptor, text, size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;
    text += n;
    size -= static_cast<std::size_t>(n);
  }
}

extern "C" void on_crash(int signal, siginfo_t* info, void* /*context*/) {
  const GuardedMemory* const memory = guarded_memory.load();
  // Sent by kill() or raise(): there is no address.
  const bool has_address = info->si_code > 0 && (signal == SIGSEGV || signal == SIGBUS);
  const char* const label =
      memory != nullptr && has_address ? memory->label_at(info->si_addr) : nullptr;
  if (label != nullptr) {
    constexpr char kBegin[] = "{\"crash\":\"";
    write_all(kBegin, sizeof kBegin - 1);
    write_all(label, std::strlen(label));
    write_all("\"}\n", 3);
  }
  if (::gettid() != ::getpid()) {
    constexpr char kThread[] = "{\"crash_in\":\"thread\"}\n";
    write_all(kThread, sizeof kThread - 1);
  }
  // The handler is removed now (SA_RESETHAND): the crash happens again and ends the process.
  if (info->si_code <= 0) ::raise(signal);
}

}  // namespace

void CheckVoice::doing(std::string_view what) {
  if (what == last_) return;
  last_ = what;
  write_verdict(Json{{"doing", last_}});
}

void CheckVoice::verdict(const CaseOutcome& outcome) {
  write_verdict(Json{{"verdict", to_string(outcome.verdict)}, {"reason", outcome.reason}});
}

void report_crashes(const GuardedMemory& memory) {
  guarded_memory.store(&memory);
  // After a stack overflow the handler needs a stack of its own.
  static std::array<std::byte, std::size_t{64} << 10> stack;
  const stack_t alternative{.ss_sp = stack.data(), .ss_flags = 0, .ss_size = stack.size()};
  ::sigaltstack(&alternative, nullptr);
  struct sigaction action{};
  action.sa_sigaction = on_crash;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | static_cast<int>(SA_RESETHAND);
  ::sigemptyset(&action.sa_mask);
  for (const int signal : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGABRT})
    ::sigaction(signal, &action, nullptr);
}

}  // namespace hearth::plugins
