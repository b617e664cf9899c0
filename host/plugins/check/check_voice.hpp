#pragma once
// How the child of a check tells what it does and what came out: JSON lines on descriptor 3.

#include "plugins/check/guarded_memory.hpp"

#include <string>
#include <string_view>

namespace hearth::plugins {

// What came out of one case.
struct CaseOutcome {
  enum class Kind { kPassed, kWarned, kFailed, kSkipped, kError };
  Kind kind = Kind::kPassed;
  std::string reason;  // what is wrong; empty if it passed

  static CaseOutcome passed() { return {}; }
  static CaseOutcome warned(std::string why) { return {Kind::kWarned, std::move(why)}; }
  static CaseOutcome failed(std::string why) { return {Kind::kFailed, std::move(why)}; }
  // The library does not have what the case asks about, or another case has failed for the same
  // reason.
  static CaseOutcome skipped(std::string why) { return {Kind::kSkipped, std::move(why)}; }
  // The library has it, and the case could not try it.
  static CaseOutcome error(std::string why) { return {Kind::kError, std::move(why)}; }
};

// Lines: {"doing": "init()"} before each step, {"crash": "event.body"} when a signal comes because
// of memory that was taken back, {"crash_in": "thread"} when it comes on another thread than the
// first, and {"verdict": "passed" | "warned" | "failed" | "skipped" | "error", "reason": "..."} at
// the end.
//
// Threads   The child's first.
class CheckVoice {
 public:
  CheckVoice();
  CheckVoice(const CheckVoice&) = delete;
  CheckVoice& operator=(const CheckVoice&) = delete;

  // What runs from now on, for the case that it does not come back. At once, unless it is what ran
  // before.
  void doing(std::string_view what);
  [[nodiscard]] const std::string& last() const { return last_; }

  void verdict(const CaseOutcome& outcome);

 private:
  void write_line(std::string_view line) const;

  int descriptor_;
  std::string last_;
};

// Makes a crash of this process say which lent memory it touched, before it dies as it would have.
// Once in a process.
//   Lifetime  `memory` outlives the process's last instruction of the library.
void report_crashes(const GuardedMemory& memory);

}  // namespace hearth::plugins
