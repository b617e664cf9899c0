#pragma once
// hearth audit: what was done on a server.

#include "cli/command_line.hpp"

#include <cstdint>
#include <string>

namespace hearth::cli {

// Prints the last entries, and with `follow` those that come, until the process is told to end or
// the server does not answer any more.
//   Failure   kExitFailed, with the reason on stderr: no server runs there, or it refuses.
[[nodiscard]] int show_audit(const AuditCommand& command);

// ---- for tests ----
// The target of the request for the first page: the last entries that the command asks for.
// `now_ms`: Unix.
[[nodiscard]] std::string audit_target(const AuditCommand& command, std::int64_t now_ms);
// Of the request for what has come since: the entries behind `after`, an id, or 0 if there was none
// to begin behind. `now_ms`: of the first page.
[[nodiscard]] std::string audit_target_after(const AuditCommand& command, std::int64_t now_ms,
                                             std::int64_t after);

}  // namespace hearth::cli
