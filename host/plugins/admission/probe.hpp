#pragma once
// Loads a library for a trial in a child process. A library that crashes, hangs or exits while it
// is loaded does so there.
//
//   parent  probe_library()     starts this program again with --plugin-probe FILE, and waits
//   child   run_plugin_probe()  dlopen, checks, init, get_class, deinit; writes each step to
//                               descriptor 3
//
// On descriptor 3 each line is a JSON object: {"step":"init"} before a step, and at the end
// {"verdict":"accepted"} or {"verdict":"refused","rule":"L4","reason":"..."}. The library may write
// to standard output and error. If the library is refused, the finding shows the end of that.

#include "plugins/admission/file_rules.hpp"

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>

namespace hearth::plugins {

// The argument that makes this program a probe; main() looks for it before anything else.
inline constexpr const char* kProbeArgument = "--plugin-probe";

struct ProbeOptions {
  // The program to start. The default is the running program, even if its file was replaced.
  std::filesystem::path program = "/proc/self/exe";
  // init() may only read files; ten seconds are for a slow machine.
  std::chrono::milliseconds time_limit{10'000};
  // Of a library in memory (StagedFile::descriptor()); -1: open it by its path.
  int descriptor = -1;
};

// Tries `library`, a private copy that does not change. Returns the broken rule, or nothing:
//
//   L1 to L5   as in the server
//   P1         it crashed, or ended without a verdict
//   P2         it took too long
//
// Promises  When this returns, the child and its own children are gone. From this process the child
//           gets only the three standard descriptors, the pipe and `descriptor`.
// Bounded   time_limit; 16 KiB of the library's output are kept, and the finding has 200 bytes of
//           them.
// Failure   P1, with the system's error, if the child cannot be started: that says nothing about
//           the library (is_untried).
// Threads   Blocks.
[[nodiscard]] std::optional<Finding> probe_library(const std::filesystem::path& library,
                                                   const ProbeOptions& options);

// Whether the child could not be started: the machine is the reason, not the library, and a retry
// may succeed.
[[nodiscard]] bool is_untried(const Finding& finding);

}  // namespace hearth::plugins
