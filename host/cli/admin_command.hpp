#pragma once
// hearth plugins, reload, agents, evict, destroy, call: what a person asks a running server.

#include "cli/command_line.hpp"

#include <string>

namespace hearth::cli {

struct AdminOutput {
  int status = kExitClean;
  std::string out;  // to stdout
  std::string err;  // to stderr
};

// Asks, and says it; before an agent is destroyed it asks the person, unless that was told not to
// be needed: a table, or with --json what the server has answered.
//   Failure   kExitFailed: no server runs, or it refuses, or the person does; of a reload also when
//             a file was refused, with the reason. kExitBadUsage: a mistake in the configuration
//             file.
[[nodiscard]] AdminOutput ask_server(const AdminCommand& command);

}  // namespace hearth::cli
