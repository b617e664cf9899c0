#pragma once
// hearth serve

#include "cli/command_line.hpp"

namespace hearth::cli {

// Runs the server until a signal stops it, or only checks its configuration. Returns the exit
// status, having said why on stderr.
//   Threads  The main one, before any other exists: it takes the signals (stop_signals.hpp).
[[nodiscard]] int serve(const ServeCommand& command);

}  // namespace hearth::cli
