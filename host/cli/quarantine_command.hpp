#pragma once
// hearth quarantine list, hearth quarantine release CLASS

#include "cli/command_line.hpp"

namespace hearth::cli {

// `list`: a line for each class in quarantine, oldest first, or a line that says that there is
// none. `release`: the class is served again. A running server does so at once, and tries its
// library.
//
// Asks the server that runs on the data directory. Without one it works on the directory itself,
// and holds its lock meanwhile.
//   Failure   kExitFailed: the class is not in quarantine, or the server refuses a library of it
//             (the class is released anyway), or neither the server nor the directory can be used.
//             kExitBadUsage: a mistake in the configuration file.
[[nodiscard]] Answer answer(const QuarantineCommand& command);

}  // namespace hearth::cli
