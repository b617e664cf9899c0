#pragma once
// hearth config

#include "cli/command_line.hpp"

namespace hearth::cli {

// Every setting with the value that `hearth serve` with the same flags would use, and where that is
// from. Reads the configuration files and nothing else: no token, no data directory, no server.
// The values of `options`, which may be secret, are left out.
//   Failure   kExitBadUsage: mistakes in the files, each at its line, as --check-config tells them.
[[nodiscard]] Answer answer(const ConfigCommand& command);

}  // namespace hearth::cli
