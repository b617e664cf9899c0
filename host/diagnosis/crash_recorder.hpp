#pragma once
// When this process crashes, records which library's code was running, and for which agent.

#include "diagnosis/call_records.hpp"

#include <array>
#include <filesystem>
#include <string_view>

#include <signal.h>

namespace hearth::diagnosis {

// While an object lives, these events leave a record (crash_record.hpp) in the file, and one line
// on standard error:
//   SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT   then the signal takes its usual course: a core, and
//                                              the process ends
//   exit() and its siblings (_exit, quick_exit) from inside a call into a library
//                                              then the process ends with kExitPluginLeft
//   end_as_hung()                              then the process ends with kExitHung
//
// Blame     A crash inside a call belongs to the library of the call. Outside of calls it belongs
//           to the library whose code crashed (diagnosis/code_ranges.hpp). On a thread that never
//           called a library it belongs to the library to whose code the stack leads back: abort()
//           itself is code of the C library.
// Stack     The stack is written last, because walking an overwritten stack may end the process.
// At once   If several threads crash at once, the first is recorded. The others wait until it ends
//           the process; exit() and end_as_hung() wait for two seconds at most.
// State     The handlers belong to the process. What they need is private to crash_recorder.cpp,
//           and belongs to the one active object.
// Threads   Made and destroyed on one thread while no other thread is in a call. end_as_hung() on
//           any.
// Lifetime  If several objects exist, the first one works and the others do nothing. The destructor
//           restores the former signal handlers and removes the file.
class CrashRecorder {
 public:
  // Makes `file` anew. If that fails (no space, no permission), crashes leave only the line.
  explicit CrashRecorder(const std::filesystem::path& file);
  ~CrashRecorder();
  CrashRecorder(const CrashRecorder&) = delete;
  CrashRecorder& operator=(const CrashRecorder&) = delete;

  // Makes the file if it could not be made before.
  void make_file();

  // Whether the file could not be made.
  [[nodiscard]] bool lacks_file() const { return is_first_ && descriptor_ < 0; }

  // `call` does not return. Its owner must be valid. `stack`: where the call is, as text; empty:
  // unknown.
  [[noreturn]] void end_as_hung(const RunningCall& call, std::string_view stack = {});

 private:
  static constexpr std::array kSignals{SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};

  std::filesystem::path file_;
  const bool is_first_;
  int descriptor_ = -1;
  std::array<struct sigaction, kSignals.size()> before_{};
};

}  // namespace hearth::diagnosis
