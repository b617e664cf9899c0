#pragma once
// The commands that ask a running server, on the command line.

#include "cli/command_line.hpp"

namespace CLI {  // NOLINT(readability-identifier-naming): the library's name
class App;
}

namespace hearth::cli {

// Adds `plugins`, `reload`, `methods`, `agents`, `evict`, `destroy` and `call`. Parsing fills
// `command`, and sets its `what` to the one that was given; both outlive the parsing.
void add_admin_commands(CLI::App& app, AdminCommand& command);

}  // namespace hearth::cli
