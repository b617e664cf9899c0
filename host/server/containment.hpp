#pragma once
// What a server does about libraries that crash it: it logs which library crashed, and the ledger
// counts the crash.

#include "base/logger.hpp"
#include "diagnosis/crash_history.hpp"
#include "diagnosis/crash_recorder.hpp"
#include "plugins/versions/version_ledger.hpp"
#include "runtime/crashed_agent.hpp"

#include <filesystem>
#include <optional>
#include <string_view>

namespace hearth::server {

// Logged at the start:
//   server.crashed_before    the server before has crashed, and the library in which it crashed
//   class.quarantined        a class is in quarantine from now on
//   server.crashes_unknown   why crashes cannot be recorded or counted; the server serves all the
//                            same
//
// Threads    Made and destroyed on the main one; the rest from any.
// Lifetime   The ledger and the logger outlive it. It outlives every call into a library.
class Containment {
 public:
  // `data`: the directory whose lock this process holds.
  Containment(const std::filesystem::path& data, plugins::VersionLedger& ledger, Logger& logger);

  // The crash of the server before, if it was in code that may have done durable work; otherwise
  // absent.
  [[nodiscard]] std::optional<runtime::AgentCrash> crash_of_work() const;

  // Writes what a full disk did not take at the start. True: nothing is missing. One thread.
  bool catch_up();

  // For a call that does not return: ends the process, as if it had crashed in the call.
  [[noreturn]] void end_as_hung(const diagnosis::RunningCall& call, std::string_view stack) {
    // NOLINTNEXTLINE(bugprone-unchecked-optional-access): made by the constructor
    recorder_->end_as_hung(call, stack);
  }

 private:
  void count(const diagnosis::CrashRecord& crash) const;
  void tell(const diagnosis::CrashRecord& crash) const;

  Logger& logger_;
  plugins::VersionLedger& ledger_;
  diagnosis::CrashHistory history_;
  std::optional<diagnosis::CrashRecord> crash_before_;
  std::optional<diagnosis::CrashRecorder> recorder_;
};

}  // namespace hearth::server
