#pragma once
// hearth dev: builds a project, serves it, and builds it again whenever a source is saved.

#include "cli/command_line.hpp"

namespace hearth::cli {

// Works in the current directory until SIGTERM or SIGINT. Returns the exit status: the server's, or
// kExitBadUsage if this is no project.
//
//   Promises  If the project does not compile or link, the output of the tools is printed, and the
//             libraries of the last good build are still served (project_build.hpp). Without one,
//             the server waits for the first library. If a library crashes the server, the server
//             is restarted (supervisor.hpp). A source that is saved during a build is built after
//             it.
[[nodiscard]] int develop(const DevCommand& command);

}  // namespace hearth::cli
