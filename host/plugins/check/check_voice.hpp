#pragma once
// How the child of a check reports its steps and its verdict: JSON lines on descriptor 3.

#include "plugins/check/check.hpp"
#include "plugins/check/guarded_memory.hpp"

#include <string>
#include <string_view>
#include <utility>

namespace hearth::plugins {

// The outcome of a case.
struct CaseOutcome {
  CheckVerdict verdict = CheckVerdict::kPassed;
  std::string reason;  // what is wrong; empty if it passed

  static CaseOutcome passed() { return {}; }
  static CaseOutcome warned(std::string why) { return {CheckVerdict::kWarning, std::move(why)}; }
  static CaseOutcome failed(std::string why) { return {CheckVerdict::kFailed, std::move(why)}; }
  // The library lacks the feature of the case, or another case has failed for the same reason.
  static CaseOutcome skipped(std::string why) { return {CheckVerdict::kSkipped, std::move(why)}; }
  // The library has the feature, but the case could not try it.
  static CaseOutcome error(std::string why) { return {CheckVerdict::kError, std::move(why)}; }
};

// Lines:
//   {"doing": "init()"}        before each step
//   {"crash": "event.body"}    on a crash in memory that was taken back
//   {"crash_in": "thread"}     on a crash in another thread than the first
//   {"verdict": "passed" | "warning" | "failed" | "skipped" | "error", "reason": "..."}  at the end
//
// Threads   The child's first.
class CheckVoice {
 public:
  CheckVoice() = default;
  CheckVoice(const CheckVoice&) = delete;
  CheckVoice& operator=(const CheckVoice&) = delete;

  // Reports the step that begins now: it may not return. Writes at once, unless it is the same step
  // as before.
  void doing(std::string_view what);
  [[nodiscard]] const std::string& last() const { return last_; }

  void verdict(const CaseOutcome& outcome);

 private:
  std::string last_;
};

// On a crash the process first reports which lent memory it touched; then it crashes as before.
// Call it once in a process.
//   Lifetime  `memory` outlives the last instruction of the library in this process.
void report_crashes(const GuardedMemory& memory);

}  // namespace hearth::plugins
