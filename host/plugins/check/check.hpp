#pragma once
// hearth check: whether a library keeps the contract of hearth/abi.h, as far as a program can find
// out.
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
  kSkipped,  // the library does not have it, it is excluded, or another rule that failed says it
  kWarning,  // the library passes with it
  kError,    // could not be tried, for the reason given; from here on the library has not passed
  kFailed,
  kCrashed,   // the child died of a signal, or ended itself
  kTimedOut,  // and was killed
};

// "passed", "timed_out": as in the JSON report.
[[nodiscard]] std::string_view to_string(CheckVerdict verdict) noexcept;

[[nodiscard]] constexpr bool is_failure(CheckVerdict verdict) {
  return verdict >= CheckVerdict::kError;
}

// One rule or case on one library.
struct CheckResult {
  std::string id;        // "E6", "T303"
  std::string sentence;  // what it asks for
  CheckVerdict verdict = CheckVerdict::kPassed;
  std::string reason;  // what is wrong, or why it was skipped; empty if it passed
  std::string advice;  // what to do about it; may be empty: then the reason says it
  std::chrono::milliseconds took{0};
};

struct CheckReport {
  std::filesystem::path file;
  std::string sha256;
  std::string plugin;   // from its note; empty if that cannot be read
  std::string version;  // likewise
  std::vector<std::string> classes;
  std::uint64_t seed = 0;
  // In the order in which they were tried. What rests on a rule that keeps the library from being
  // loaded is left out.
  std::vector<CheckResult> results;
  std::size_t untried = 0;  // how many were left out

  [[nodiscard]] bool passed() const;
  [[nodiscard]] std::size_t count(CheckVerdict verdict) const;
  [[nodiscard]] const CheckResult* find(std::string_view id) const;
};

struct CheckOptions {
  // The program that is its own child. The default is the one that is running.
  std::filesystem::path program = "/proc/self/exe";
  // Of one case; those that could go on for ever use half of it.
  std::chrono::milliseconds time_limit{10'000};
  std::uint64_t seed = 1;
  std::string options = "{}";        // for create()
  std::vector<std::string> methods;  // to call; empty: those that are found in the library
  bool may_call = true;              // false: none
  std::filesystem::path
      older;  // the version of the library before, for what it has stored; empty: none
  // Ids of rules and cases that are skipped; E1 and E2 cannot be: without them nothing can be
  // tried.
  std::vector<std::string> excluded;
  std::vector<std::string> only;  // ids of cases that are tried; empty: all
  // Called with each result as it comes, for whoever wants to show progress.
  std::function<void(const CheckResult&)> on_result;
};

// Promises  The library's code runs in children only, which are gone when this returns. The file is
//           read once: what is tried is a private copy of what was hashed.
// Failure   kNotFound, kForbidden, kInvalidArgument: there is no such file, or no older one, or it
//           cannot be read. kUnavailable, kInternal: no place for the copy. Everything that is
//           wrong with the library is in the report.
// Bounded   512 MiB of file; time_limit for each case.
// Threads   Any. Blocks.
[[nodiscard]] Result<CheckReport> check_library(const std::filesystem::path& file,
                                                const CheckOptions& options);

// Whether `id` names a rule or a case that a check tries.
[[nodiscard]] bool is_check_id(std::string_view id);

}  // namespace hearth::plugins
