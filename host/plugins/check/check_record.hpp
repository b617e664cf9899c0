#pragma once
// The record that a library has passed a check. A server may require it
// (admission/required_check.hpp).

#include "base/clock.hpp"
#include "base/error.hpp"
#include "plugins/check/check.hpp"

#include <filesystem>

namespace hearth::plugins {

// Writes the record of the library of `report` below `data`, and makes `data` if it is absent. Only
// the owner may read and write it.
//   Requires  report.passed()
//   Failure   kForbidden, kUnavailable, kInternal: the directory or the file cannot be made.
[[nodiscard]] Result<void> write_check_record(const std::filesystem::path& data,
                                              const CheckReport& report, const Clock& clock);

}  // namespace hearth::plugins
