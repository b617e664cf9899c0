#pragma once
// What a server does about libraries that end it: it says which one it was, and does not serve it again and again.

#include "base/error.hpp"
#include "base/logger.hpp"
#include "base/mutex.hpp"
#include "diagnosis/crash_history.hpp"
#include "diagnosis/crash_recorder.hpp"
#include "plugins/versions/quarantine.hpp"
#include "runtime/agent_class.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::server {

// Logged at the start: server.crashed_before (the server before has crashed, and in whose code), class.quarantined (a class
// is in quarantine from now on), server.crashes_unknown (why crashes cannot be recorded or counted; they are no reason not to serve).
//
// What is released is logged as well (class.released).
//
// Threads    Made and destroyed on the main one; the rest from any.
// Lifetime   The logger outlives it. Outlived by the lock on the data directory, and outlives every call into a library.
class Containment {
 public:
  // `data`: the directory whose lock this process holds.
  Containment(const std::filesystem::path& data, Logger& logger);

  // What ended the server before this one; absent: nothing that could say so.
  [[nodiscard]] const std::optional<diagnosis::CrashRecord>& before() const { return before_; }

  // Writes what there was no room for at the start. True: nothing is missing. One thread.
  bool catch_up();

  // Why no agent of the class may be woken, in words for a client; empty: they may.
  [[nodiscard]] std::string refusal(const runtime::AgentClass& agent_class) const;

  // Why a library of this content must not even be loaded, in words for an operator; empty: it may.
  [[nodiscard]] std::string refusal_of_library(const std::string& sha256) const;

  // Oldest first.
  [[nodiscard]] std::vector<plugins::QuarantinedClass> quarantined() const;

  // Every version of the class goes, whose name was given as it is or as URLs spell it, and its crashes are forgotten: refusal() says
  // nothing against it from now on. What was in quarantine.
  //   Failure   kNotFound: it is not in quarantine. Else the list cannot be written, and nothing has changed.
  [[nodiscard]] Result<std::vector<plugins::QuarantinedClass>> release(const std::string& given);

  // For a call that does not return: the process ends, as if it had crashed in it.
  [[noreturn]] void end_as_hung(const diagnosis::RunningCall& call, std::string_view stack) {
    // NOLINTNEXTLINE(bugprone-unchecked-optional-access): made by the constructor
    recorder_->end_as_hung(call, stack);
  }

 private:
  void tell(const diagnosis::CrashRecord& crash) const;
  [[nodiscard]] plugins::Quarantine current() const;
  void replace(plugins::Quarantine quarantine);

  Logger& logger_;
  diagnosis::CrashHistory history_;
  std::optional<diagnosis::CrashRecord> before_;
  Mutex releasing_;  // taken first, and held while the list is written: nobody else changes it
  bool is_saved_ GUARDED_BY(releasing_) = true;
  mutable Mutex mutex_;  // never held while anything waits: event loops take it
  plugins::Quarantine quarantine_ GUARDED_BY(mutex_);
  std::optional<diagnosis::CrashRecorder> recorder_;
};

}  // namespace hearth::server
