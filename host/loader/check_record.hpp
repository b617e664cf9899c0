#pragma once
// What stays of a check that a library has passed: <data>/checked/<sha256>.ok.json, which a server may ask for (rule K1).

#include "base/clock.hpp"
#include "base/error.hpp"
#include "loader/check.hpp"
#include "loader/file_rules.hpp"

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string_view>

namespace hearth::loader {

// Within a server's data directory.
inline constexpr const char* kCheckedDirectory = "checked";

// Writes that what `report` is about has passed, below `data`, which is made if it is not there. Rights are the owner's alone.
//   Requires  report.passed()
//   Failure   kForbidden, kUnavailable, kInternal: the directory or the file cannot be made.
[[nodiscard]] Result<void> write_check_record(const std::filesystem::path& data,
                                              const CheckReport& report, const Clock& clock);

// K1 if there is no record in `directory` ("<data>/checked") that says that these bytes have passed a check of this major version of the
// ABI. A record counts only if nobody but root and `user` can have written it.
[[nodiscard]] std::optional<Finding> require_check_record(const std::filesystem::path& directory,
                                                          std::string_view sha256, uid_t user);

}  // namespace hearth::loader
