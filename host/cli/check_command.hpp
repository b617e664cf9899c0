#pragma once
// hearth check: checks whether a library keeps the contract.

#include "cli/command_line.hpp"

#include <string>

namespace hearth::cli {

// Prints the report to stdout while it checks. Returns the exit status: kExitClean (passed),
// kExitFailed (failed), kExitBadUsage (not tried: no such file, an unknown id, no place for the
// record).
[[nodiscard]] int check(const CheckCommand& command);

}  // namespace hearth::cli
