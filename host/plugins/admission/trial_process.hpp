#pragma once
// A child process in which a library may crash, hang or exit. It is gone when the call returns.

#include "json/json.hpp"

#include <chrono>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::plugins {

// The child writes its verdict here.
inline constexpr int kVerdictDescriptor = 3;
// The child gets TrialOptions::given here.
inline constexpr int kGivenDescriptor = 4;

struct TrialOptions {
  std::filesystem::path program;
  std::vector<std::string> arguments;  // without the program's own name
  std::chrono::milliseconds time_limit{10'000};
  int given =
      -1;  // a descriptor above kGivenDescriptor; the child gets it as kGivenDescriptor; -1: none
};

struct TrialOutcome {
  // The child's lines, without what is none of write_verdict(): the library can write there too.
  [[nodiscard]] std::vector<Json> lines() const;
  // A signal ended it.
  [[nodiscard]] bool has_crashed() const;
  // How it ended without a verdict: "it crashed (SIGSEGV) in init()" with its last words. `where`:
  // "in init()".
  [[nodiscard]] std::string how_it_ended(std::string_view where) const;

  std::string not_started;  // the system's error if the child could not start; empty: it started
  bool in_time = true;      // false: it was still busy at the time limit, and was killed
  std::chrono::milliseconds time_limit{};
  int status = 0;       // as waitpid() gives it
  std::string verdict;  // what it wrote to kVerdictDescriptor
  std::string output;   // what it wrote to standard output and error
};

// Promises  When this returns, the child and its own children are gone. From this process the child
//           gets only the three standard descriptors, the pipe on descriptor 3, and `given`;
//           standard input is empty.
// Bounded   time_limit; the last 16 KiB of `verdict` and of `output` are kept.
// Threads   Any. Blocks.
[[nodiscard]] TrialOutcome run_trial(const TrialOptions& options);

// ---- in the child ----

// Crashes are expected: they leave no core file. The child ends if its parent ends.
void be_a_trial();
// Writes a line to kVerdictDescriptor, or to standard output if an operator has started the child.
// At once and unbuffered: the library may crash in the next instruction.
void write_verdict(const Json& line);

// ---- words ----

// "SIGSEGV"
[[nodiscard]] std::string signal_name(int signal);

// `; it said: "..."` with the last 200 bytes of a child's output; empty if the output is blank.
[[nodiscard]] std::string last_words(std::string_view output);

}  // namespace hearth::plugins
