#pragma once
// Commands that ask a running server: hearth plugins, reload, agents, evict, destroy, call, why.

#include "cli/command_line.hpp"

#include <string>

namespace hearth::cli {

struct AdminOutput {
  int status = kExitClean;
  std::string out;  // to stdout
  std::string err;  // to stderr
};

// Runs the command. The output is a table, or with --json the server's answer. Without --yes,
// destroy first asks the person at the terminal.
//   Failure   kExitFailed: no server runs, or the server or the person refuses; for a reload also
//             if a file was refused, with the reason. kExitBadUsage: a mistake in the configuration
//             file.
[[nodiscard]] AdminOutput ask_server(const AdminCommand& command);

}  // namespace hearth::cli
