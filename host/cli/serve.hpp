#pragma once
// hearth serve

#include "cli/command_line.hpp"

namespace hearth::cli {

// Runs the server until a signal stops it, or only checks its configuration. Returns the exit
// status; stderr has the reason of a failure.
//   Threads  The main thread, before other threads exist: it takes the signals (stop_signals.hpp).
[[nodiscard]] int serve(const ServeCommand& command);

}  // namespace hearth::cli
