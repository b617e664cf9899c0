#pragma once
// What a server does about libraries that end it: it says which one it was, and does not serve it again and again.

#include "app/crash_history.hpp"
#include "app/crash_recorder.hpp"
#include "app/quarantine.hpp"
#include "base/logger.hpp"
#include "runtime/agent_class.hpp"

#include <filesystem>
#include <optional>
#include <string>

namespace hearth::app {

// Logged at the start: server.crashed_before (the server before has crashed, and in whose code), class.quarantined (a class
// is in quarantine from now on), server.crashes_unknown (why crashes cannot be recorded or counted; they are no reason not to serve).
//
// Threads    Made and destroyed on the main one; the rest from any.
// Lifetime   The logger outlives it. Outlived by the lock on the data directory, and outlives every call into a library.
class Containment {
 public:
  // `data`: the directory whose lock this process holds.
  Containment(const std::filesystem::path& data, Logger& logger);

  // Why no agent of the class may be woken, in words for a client; empty: they may.
  [[nodiscard]] std::string refusal(const runtime::AgentClass& agent_class) const;

  // For a call that does not return: the process ends, as if it had crashed in it.
  [[noreturn]] void end_as_hung(const loader::RunningCall& call) { recorder_->end_as_hung(call); }

 private:
  void tell(const CrashRecord& crash) const;

  Logger& logger_;
  Quarantine quarantine_;
  std::optional<CrashRecorder> recorder_;
};

}  // namespace hearth::app
