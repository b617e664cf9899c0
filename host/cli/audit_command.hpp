#pragma once
// What hearth audit asks the server.

#include "cli/command_line.hpp"

#include <cstdint>
#include <string>

namespace hearth::cli {

// The target of the request for the last entries that the command asks for. `now_ms`: Unix.
[[nodiscard]] std::string audit_target(const AuditCommand& command, std::int64_t now_ms);
// The target of the request for new entries: those after the id `after`, or 0 if there was no entry
// before. `now_ms`: the time of the first page.
[[nodiscard]] std::string audit_target_after(const AuditCommand& command, std::int64_t now_ms,
                                             std::int64_t after);

}  // namespace hearth::cli
