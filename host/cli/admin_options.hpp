#pragma once
// Options of the commands that ask a running server.

#include "cli/command_line.hpp"

namespace CLI {  // NOLINT(readability-identifier-naming): the library's name
class App;
}

namespace hearth::cli {

// Adds `plugins`, `reload`, `methods`, `agents`, `evict`, `destroy`, `call`, `why`, `stuck`,
// `operations`, `resolve`, `fibers`, `schedules`, `queue` and `sql`. Parsing fills `command`, and
// sets its `what` to the given command. Both parameters outlive the parsing.
void add_admin_commands(CLI::App& app, AdminCommand& command);

}  // namespace hearth::cli
