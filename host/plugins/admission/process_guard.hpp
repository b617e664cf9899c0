#pragma once
// What belongs to the whole process and not to a library: looked at before a library runs, and put
// back after it.

#include "base/file_descriptor.hpp"
#include "diagnosis/code_ranges.hpp"

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

// A picture of it at one moment. Values.
struct ProcessSettings {
  static constexpr std::size_t kSignals = 65;

  // What the C library says of a thread's arithmetic: rounding, traps, and how tiny numbers are
  // treated.
  struct Arithmetic {
    int rounding = 0;
    int traps = 0;
    unsigned control = 0;  // of the vector unit, without its sticky flags
    bool operator==(const Arithmetic&) const = default;
  };

  //   Threads  Any, while nobody else changes what is looked at. The signal mask and the arithmetic
  //            are those of this thread.
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
  // ---- of the thread ----
  sigset_t blocked{};
  Arithmetic arithmetic;
};

// What is different, a sentence's end each: "the umask is another".
[[nodiscard]] std::vector<std::string> differences(const ProcessSettings& before,
                                                   const ProcessSettings& after);

// The same for what a thread has of its own. A library that was linked with -ffast-math changes
// that by being loaded.
[[nodiscard]] std::vector<std::string> thread_differences(const ProcessSettings& before,
                                                          const ProcessSettings& after);

// Keeps the settings as they were when it was made.
//
// Not seen   Threads, descriptors and limits: those of a server change all the time
//            (process_state.hpp looks at some of them in a process where they do not).
// Threads    One makes, asks and destroys it: the one that calls the library. What others change
//            meanwhile is taken for the library's. Putting back the locale and the environment is
//            as safe for the threads that read them as changing them was.
// Cost       Some hundred system calls a look.
class ProcessGuard {
 public:
  ProcessGuard();
  ProcessGuard(const ProcessGuard&) = delete;
  ProcessGuard& operator=(const ProcessGuard&) = delete;

  // What of the process is different now; nothing is changed.
  [[nodiscard]] std::vector<std::string> changes() const;

  // Puts back what is different, also of the thread, and says what that was.
  //   Failure   What is different all the same (a directory that may not be entered any more) is
  //             named with "(it stays)".
  [[nodiscard]] std::vector<std::string> restore();

  // The same after the end of a library, while its code is still mapped. What was in force when
  // this object was made may have been the library's own then, which it has taken back since: that
  // is not put in again. What deinit() has left
  //   as it was at `first`, before any library   stays;
  //   in the library's code, or is a locale      becomes what it was at `first`: whose a locale is
  //                                              cannot be seen, and it is code, too;
  //   otherwise different                        is put back, unless it is a handler that was in
  //                                              the library's code.
  // Destroy the object before the library is unmapped: it, too, may hold the library's locale.
  [[nodiscard]] std::vector<std::string> restore_without(const diagnosis::CodeRange& library,
                                                         const ProcessSettings& first);

 private:
  std::vector<std::string> restore_to(const ProcessSettings& wanted, const ProcessSettings& after);

  FileDescriptor directory_;  // by which it is found again though it is renamed
  const ProcessSettings before_;
};

}  // namespace hearth::plugins
