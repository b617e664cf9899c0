#pragma once
// hearth audit: the audit log of a server.

#include "cli/command_line.hpp"

#include <cstdint>
#include <string>

namespace hearth::cli {

// Prints the last entries. With `follow` also prints new entries, until a signal ends the process
// or the server does not answer any more.
//   Failure   kExitFailed, with the reason on stderr: no server runs there, or it refuses.
[[nodiscard]] int show_audit(const AuditCommand& command);

// ---- for tests ----
// The target of the request for the first page: the last entries that the command asks for.
// `now_ms`: Unix.
[[nodiscard]] std::string audit_target(const AuditCommand& command, std::int64_t now_ms);
// The target of the request for new entries: those after the id `after`, or 0 if there was no entry
// before. `now_ms`: the time of the first page.
[[nodiscard]] std::string audit_target_after(const AuditCommand& command, std::int64_t now_ms,
                                             std::int64_t after);

}  // namespace hearth::cli
