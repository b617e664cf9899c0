#pragma once
// Options of the commands that ask a running server.

#include "cli/command_line.hpp"

namespace CLI {  // NOLINT(readability-identifier-naming): the library's name
class App;
}

namespace hearth::cli {

// Adds `console`, `plugins`, `reload`, `methods`, `agents`, `evict`, `destroy`, `call`, `why`,
// `stuck`, `operations`, `resolve`, `fibers`, `schedules`, `queue`, `chats` and `sql`. Parsing one
// of them sets `chosen`, which outlives the parsing.
void add_admin_commands(CLI::App& app, std::optional<Command>& chosen);

}  // namespace hearth::cli
