#pragma once
// hearth config

#include "cli/command_line.hpp"

namespace hearth::cli {

// Every setting with the value that `hearth serve` with the same flags would use, and the source of
// the value. Reads only the configuration files: no token, no data directory, no server. Leaves out
// the values of `options`, which may be secret.
//   Failure   kExitBadUsage: mistakes in the files, each with its line, as --check-config prints.
[[nodiscard]] Answer answer(const ConfigCommand& command);

}  // namespace hearth::cli
