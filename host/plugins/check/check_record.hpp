#pragma once
// What stays of a check that a library has passed. A server may ask for it:
// admission/required_check.hpp.

#include "base/clock.hpp"
#include "base/error.hpp"
#include "plugins/check/check.hpp"

#include <filesystem>

namespace hearth::plugins {

// Writes that what `report` is about has passed, below `data`, which is made if it is not there.
// Rights are the owner's alone.
//   Requires  report.passed()
//   Failure   kForbidden, kUnavailable, kInternal: the directory or the file cannot be made.
[[nodiscard]] Result<void> write_check_record(const std::filesystem::path& data,
                                              const CheckReport& report, const Clock& clock);

}  // namespace hearth::plugins
