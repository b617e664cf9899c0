#pragma once
// hearth quarantine list, hearth quarantine release CLASS

#include "cli/command_line.hpp"

namespace hearth::cli {

// `list`: a line for each class in quarantine, oldest first, or one that says that there is none.
// `release`: the class is served again; at once if a server runs, which then tries its library.
//
// Where a server runs on the data directory it is asked. Without one the directory itself is, which
// nobody may take meanwhile.
//   Failure   kExitFailed: the class is not in quarantine, the server refuses a library of it (it
//             is released all the same), or neither the server nor the directory can be used.
//             kExitBadUsage: a mistake in the configuration file.
[[nodiscard]] Answer answer(const QuarantineCommand& command);

}  // namespace hearth::cli
