#pragma once
// hearth dev: builds a project, serves it, and builds again whenever a source is saved.

#include "cli/command_line.hpp"

namespace hearth::cli {

// In the current directory, until SIGTERM or SIGINT. Returns the status to end with: that of the
// server, or kExitBadUsage if this is no project.
//
//   Promises  A project that does not compile or link is told with what the tools say, and what
//             was built before goes on being served (project_build.hpp); without any, the server
//             waits for the first library. A server that its library crashes is started again
//             (supervisor.hpp). A source that is saved during a build is built after it.
[[nodiscard]] int develop(const DevCommand& command);

}  // namespace hearth::cli
