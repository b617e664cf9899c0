#pragma once
// Writes down, when this process crashes, what it was doing in whose code.

#include "diagnosis/call_records.hpp"

#include <array>
#include <filesystem>
#include <string_view>

#include <signal.h>

namespace hearth::diagnosis {

// While an object lives, these leave a record (crash_record.hpp) in the file, and one line on
// standard error:
//   SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT   then the signal does what it does without us: a
//                                              core, and the end
//   exit() from inside a call into a library   then the process ends with kExitPluginLeft
//   end_as_hung()                              then the process ends with kExitHung
// Outside of calls a crash is a library's if the code that crashed is (diagnosis/code_ranges.hpp);
// and on a thread that the host calls no libraries on, if the stack leads back to such code:
// abort() is the C library's.
// The record has the stack, too: written last, since to walk a stack that was overwritten may be
// the end. The first of them is recorded, if more than one thread crashes at once; the others wait
// until it ends the process, exit() and end_as_hung() for two seconds at most.
//
// State      A handler is the process's: what it needs is private to crash_recorder.cpp, and
//            belongs to the one object there is.
// Threads    Made and destroyed on one thread while the others are in no call. end_as_hung() on
//            any.
// Lifetime   Of several at a time the first one does this, and the others do nothing. The
//            destructor gives the signals back to whoever had them, and removes the file.
class CrashRecorder {
 public:
  // Makes `file` anew. Without one (no space, no permission) crashes leave only the line.
  explicit CrashRecorder(const std::filesystem::path& file);
  ~CrashRecorder();
  CrashRecorder(const CrashRecorder&) = delete;
  CrashRecorder& operator=(const CrashRecorder&) = delete;

  // Makes the file if it could not be made before.
  void make_file();

  // Whether there should be a file to write into, and is none.
  [[nodiscard]] bool lacks_file() const { return is_first_ && descriptor_ < 0; }

  // A call does not return. The owner is valid. `stack`: where it is, as a text; empty: unknown.
  [[noreturn]] void end_as_hung(const RunningCall& call, std::string_view stack = {});

 private:
  static constexpr std::array kSignals{SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};

  std::filesystem::path file_;
  const bool is_first_;
  int descriptor_ = -1;
  std::array<struct sigaction, kSignals.size()> before_{};
};

}  // namespace hearth::diagnosis
