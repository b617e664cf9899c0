#pragma once
// hearth quarantine list, hearth quarantine release CLASS

#include "app/command_line.hpp"

namespace hearth::app {

// `list`: a line for each class in quarantine, oldest first, or one that says that there is none.
// `release`: takes the data directory, which no server may have; kExitFailed if the class is not in quarantine.
[[nodiscard]] Answer answer(const QuarantineCommand& command);

}  // namespace hearth::app
