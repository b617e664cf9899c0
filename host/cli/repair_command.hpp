#pragma once
// hearth repair

#include "cli/command_line.hpp"

namespace hearth::cli {

// Repairs the directory of agents (runtime/repair.hpp) and says what was done, a line for each
// agent that it is about.
//   Failure  kExitFailed: a server runs on the data directory, something cannot be read or written,
//            or an agent is left whose file is missing or damaged. kExitBadUsage: a mistake in the
//            configuration file.
[[nodiscard]] Answer answer(const RepairCommand& command);

}  // namespace hearth::cli
