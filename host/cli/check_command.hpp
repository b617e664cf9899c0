#pragma once
// hearth check: tries whether a library keeps the contract, and says so.

#include "cli/command_line.hpp"

#include <string>

namespace hearth::cli {

// Prints the report to stdout as it comes, and gives the exit status: kExitClean (it has passed),
// kExitFailed (it has not), kExitBadUsage (it could not be tried: no such file, an unknown id, no
// place for the record).
[[nodiscard]] int check(const CheckCommand& command);

}  // namespace hearth::cli
