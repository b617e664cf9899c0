#pragma once
// hearth check: tests whether a library keeps the contract of hearth/abi.h.
//
//   parent  check_library()     the file's rules, the probe, then each case of check_cases.hpp
//   child   run_plugin_check()  one case (check_child.hpp)

#include "base/error.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::plugins {

enum class CheckVerdict {
  kPassed,
  kSkipped,  // the library lacks the feature, the id is excluded, or a rule that failed covers it
  kWarning,  // the library passes with a warning
  kError,    // could not be tried, see the reason; with this and those below the library fails
  kFailed,
  kCrashed,   // a signal ended the child, or it ended itself
  kTimedOut,  // the child was killed
};

// "passed", "timed_out": as in the JSON report.
[[nodiscard]] std::string_view to_string(CheckVerdict verdict) noexcept;

[[nodiscard]] constexpr bool is_failure(CheckVerdict verdict) {
  return verdict >= CheckVerdict::kError;
}

// One rule or case on one library.
struct CheckResult {
  std::string id;        // "E6", "T303"
  std::string sentence;  // the rule
  CheckVerdict verdict = CheckVerdict::kPassed;
  std::string reason;  // what is wrong, or why it was skipped; empty if it passed
  std::string advice;  // what to do; may be empty: then the reason says it
  std::chrono::milliseconds took{0};
};

struct CheckReport {
  std::filesystem::path file;
  std::string sha256;
  std::string plugin;   // from its note; empty if the note cannot be read
  std::string version;  // likewise
  std::vector<std::string> classes;
  std::uint64_t seed = 0;
  // In the order in which they were tried. If a broken rule keeps the library from being loaded,
  // the cases that need it loaded are left out.
  std::vector<CheckResult> results;
  std::size_t untried = 0;  // how many were left out

  [[nodiscard]] bool passed() const;
  [[nodiscard]] std::size_t count(CheckVerdict verdict) const;
  [[nodiscard]] const CheckResult* find(std::string_view id) const;
};

struct CheckOptions {
  // The program to start as the child. The default is the running program.
  std::filesystem::path program = "/proc/self/exe";
  // For one case. Cases that could go on for ever use half of it.
  std::chrono::milliseconds time_limit{10'000};
  std::uint64_t seed = 1;
  std::string options = "{}";        // for create()
  std::vector<std::string> methods;  // to call; empty: those that are found in the library
  bool may_call = true;              // false: no method is called
  std::filesystem::path
      older;  // the library's version before, which writes the data to migrate; empty: none
  // Ids of rules and cases to skip. E1 and E2 are never skipped: a library that breaks them cannot
  // be tried.
  std::vector<std::string> excluded;
  std::vector<std::string> only;  // ids of the cases to try; empty: all
  // Called with each result at once, to show progress.
  std::function<void(const CheckResult&)> on_result;
};

// Promises  The library's code runs only in child processes, which are gone when this returns. The
//           file is read once: the children load private copies of the hashed bytes.
// Failure   kNotFound, kForbidden, kInvalidArgument: the file or the older one is absent or cannot
//           be read. kUnavailable, kInternal: the copy cannot be made. The report has everything
//           that is wrong with the library.
// Bounded   A file of 512 MiB; time_limit for each case.
// Threads   Any. Blocks.
[[nodiscard]] Result<CheckReport> check_library(const std::filesystem::path& file,
                                                const CheckOptions& options);

// Whether `id` names a rule or a case that a check tries.
[[nodiscard]] bool is_check_id(std::string_view id);

}  // namespace hearth::plugins
