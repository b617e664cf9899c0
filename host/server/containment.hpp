#pragma once
// What a server does about libraries that end it: it says which one it was, and the ledger counts
// it.

#include "base/logger.hpp"
#include "diagnosis/crash_history.hpp"
#include "diagnosis/crash_recorder.hpp"
#include "plugins/versions/version_ledger.hpp"
#include "runtime/crashed_agent.hpp"

#include <filesystem>
#include <optional>
#include <string_view>

namespace hearth::server {

// Logged at the start: server.crashed_before (the server before has crashed, and in whose code),
// class.quarantined (a class is in quarantine from now on), server.crashes_unknown (why crashes
// cannot be recorded or counted; the server serves all the same).
//
// Threads    Made and destroyed on the main one; the rest from any.
// Lifetime   The ledger and the logger outlive it. Outlives every call into a library.
class Containment {
 public:
  // `data`: the directory whose lock this process holds.
  Containment(const std::filesystem::path& data, plugins::VersionLedger& ledger, Logger& logger);

  // What the server before has left, if it crashed in an agent's code and that may have been the
  // work of a fiber; else nothing.
  [[nodiscard]] std::optional<runtime::AgentCrash> crash_of_fiber() const;

  // Writes what there was no room for at the start. True: nothing is missing. One thread.
  bool catch_up();

  // For a call that does not return: the process ends, as if it had crashed in it.
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
