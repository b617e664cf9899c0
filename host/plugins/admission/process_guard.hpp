#pragma once
// Settings of the whole process, which no library may change: looked at before a library runs, and
// put back after it.

#include "base/file_descriptor.hpp"
#include "diagnosis/code_ranges.hpp"

#include <sys/resource.h>
#include <sys/time.h>
#include <sys/types.h>

#include <array>
#include <cstddef>
#include <exception>
#include <locale>
#include <new>
#include <string>
#include <vector>

#include <signal.h>

namespace hearth::plugins {

// The settings at one moment. A value.
struct ProcessSettings {
  static constexpr std::size_t kSignals = 65;

  // A thread's arithmetic: rounding, traps, and how tiny numbers are treated.
  struct Arithmetic {
    int rounding = 0;
    int traps = 0;
    unsigned control = 0;  // of the vector unit, without its sticky flags
    bool operator==(const Arithmetic&) const = default;
  };

  //   Threads  Any, while no other thread changes the settings. The signal mask and the arithmetic
  //            are those of the calling thread.
  [[nodiscard]] static ProcessSettings take();

  // ---- of the process ----
  std::array<struct sigaction, kSignals> actions{};  // by signal number
  std::terminate_handler on_terminate = nullptr;
  std::new_handler on_new = nullptr;
  std::string directory;
  mode_t mask = 0;
  std::vector<std::string> environment;  // "NAME=value"
  std::string locale;                    // of C
  std::locale global_locale;             // of C++
  std::array<rlimit, RLIM_NLIMITS> limits{};
  std::array<itimerval, 3> time_left{};  // of the interval timers, by ITIMER_REAL and its siblings
  std::size_t timers = 0;                // of timer_create(); 0 if the system does not tell
  pid_t group = 0;
  pid_t session = 0;
  // ---- of the thread ----
  sigset_t blocked{};
  Arithmetic arithmetic;
};

// What is different. Each text is the end of a sentence: "the umask is another".
[[nodiscard]] std::vector<std::string> differences(const ProcessSettings& before,
                                                   const ProcessSettings& after);

// Keeps the settings from when it was made.
//
// Not seen   Threads and descriptors, which change all the time in a server. (process_state.hpp
//            looks at them in a process where they do not.)
// Stays      A timer of timer_create(), because it may be another thread's; a session; a limit that
//            only a privileged user may raise again.
// Threads    Only the thread that calls the library uses it. Changes by other threads meanwhile
//            count as the library's. Putting back the locale and the environment is as unsafe for
//            threads that read them as the library's change was.
// Cost       Some hundred system calls a look.
class ProcessGuard {
 public:
  ProcessGuard();
  ProcessGuard(const ProcessGuard&) = delete;
  ProcessGuard& operator=(const ProcessGuard&) = delete;

  // Which settings of the process are different now. Changes nothing.
  [[nodiscard]] std::vector<std::string> changes() const;

  // Puts back what is different, for the thread too, and returns what was different.
  //   Failure   A setting that cannot be put back (a directory that may not be entered any more)
  //             has "(it stays)" behind it.
  [[nodiscard]] std::vector<std::string> restore();

  // The same after deinit(), while the library's code is still mapped. `first`: before any library.
  // The settings when this object was made may be the library's own, so not all are put back:
  //   now as at `first`                          stays
  //   a handler; the one before is not in the    the handler before is put back
  //   library's code
  //   a handler; the one before is in it         stays, if it is not in the library's code itself;
  //                                              otherwise the handler of `first` is put back
  //   the global C++ locale                      the C++ and the C locale of `first` are put back:
  //                                              a locale's owner is unknown, and it may hold code
  //   an alarm or an interval timer              that of `first`: the handler may go now, and its
  //                                              signal would end the process
  //   any other change                           is put back
  // Destroy this object before the library is unmapped: it may hold the library's locale.
  [[nodiscard]] std::vector<std::string> restore_without(const diagnosis::CodeRange& library,
                                                         const ProcessSettings& first);

 private:
  std::vector<std::string> restore_to(const ProcessSettings& wanted, const ProcessSettings& after);

  FileDescriptor directory_;  // finds the current directory again even if it is renamed
  const ProcessSettings before_;
};

}  // namespace hearth::plugins
