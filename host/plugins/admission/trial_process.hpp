#pragma once
// A child process in which a library may crash, hang or exit: started, watched, and gone when the
// call returns.

#include <chrono>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::plugins {

// Where the child tells what it finds.
inline constexpr int kVerdictDescriptor = 3;
// And where it finds a file of ours, if it gets one.
inline constexpr int kGivenDescriptor = 4;

struct TrialOptions {
  std::filesystem::path program;
  std::vector<std::string> arguments;  // without the program's own name
  std::chrono::milliseconds time_limit{10'000};
  int given =
      -1;  // a descriptor of ours, above kGivenDescriptor, that the child gets as that; -1: none
};

struct TrialOutcome {
  std::string not_started;  // why there was no child, in the system's words; empty: there was one
  bool in_time = true;      // false: it was still busy at the end of the limit, and was killed
  int status = 0;           // as waitpid() gives it
  std::string verdict;      // what it wrote to kVerdictDescriptor
  std::string output;       // what it wrote to standard output and error
};

// Promises  The child and what it started are gone when this returns. The child has no descriptor
//           of ours but its three standard ones, the pipe on descriptor 3, and what it is given;
//           standard input is empty.
// Bounded   time_limit; of each of the two texts the last 16 KiB are kept.
// Threads   Any. Blocks.
[[nodiscard]] TrialOutcome run_trial(const TrialOptions& options);

// "SIGSEGV"
[[nodiscard]] std::string signal_name(int signal);

// `; it said: "..."` with the last 200 bytes of what a child printed, or nothing if that is blank.
[[nodiscard]] std::string last_words(std::string_view output);

}  // namespace hearth::plugins
