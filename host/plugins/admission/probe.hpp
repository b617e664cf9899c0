#pragma once
// Loads a library for a trial in a process of its own, so that one which crashes, hangs or exits
// while it is loaded does so there.
//
//   parent  probe_library()     starts this program again with --plugin-probe FILE, and waits
//   child   run_plugin_probe()  dlopen, checks, init, get_class, deinit; tells each step on
//                               descriptor 3
//
// On descriptor 3 each line is a JSON object: {"step":"init"} before a step, and at the end
// {"verdict":"accepted"} or {"verdict":"refused","rule":"L4","reason":"..."}. Standard output and
// error belong to the library and are shown to the person when something is wrong.

#include "plugins/admission/file_rules.hpp"

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>

namespace hearth::plugins {

// The argument that makes this program a probe; main() looks for it before anything else.
inline constexpr const char* kProbeArgument = "--plugin-probe";

struct ProbeOptions {
  // The program to start. The default is the one that is running, even if its file was replaced.
  std::filesystem::path program = "/proc/self/exe";
  // init() reads files at most; ten seconds are for a slow machine.
  std::chrono::milliseconds time_limit{10'000};
  // Of the library, if that lies in memory (StagedFile::descriptor()); -1: its path is enough.
  int descriptor = -1;
};

// What the trial found: nothing, or the rule that is broken (L1 to L5; P1 crashed or ended without
// a verdict;
// P2 took too long). `library` is a private copy that nobody changes.
//
// Promises  The child and what it started are gone when this returns. The child has no descriptor
//           of ours but its three standard ones and the pipe.
// Bounded   time_limit; 16 KiB of what the library prints is kept, and 200 bytes of it are told.
// Failure   P1, with the system's words, if the child cannot be started: that says nothing about
//           the library (is_untried).
// Threads   Blocks.
[[nodiscard]] std::optional<Finding> probe_library(const std::filesystem::path& library,
                                                   const ProbeOptions& options);

// Whether it was no trial: the trouble is the machine's and not the library's, and may pass.
[[nodiscard]] bool is_untried(const Finding& finding);

}  // namespace hearth::plugins
