#pragma once
// hearth repair

#include "cli/command_line.hpp"

namespace hearth::cli {

// Repairs the directory of agents (runtime/repair.hpp), and prints a line for each agent concerned.
//   Failure  kExitFailed: a server runs on the data directory, or a file cannot be read or written,
//            or an agent's file is still missing or damaged. kExitBadUsage: a mistake in the
//            configuration file.
[[nodiscard]] Answer answer(const RepairCommand& command);

}  // namespace hearth::cli
