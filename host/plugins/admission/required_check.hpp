#pragma once
// Rule K1: the record that a library has passed a check, <data>/checked/<sha256>.ok.json.

#include "plugins/admission/file_rules.hpp"

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string_view>

namespace hearth::plugins {

// Within a server's data directory.
inline constexpr const char* kCheckedDirectory = "checked";

// The record of the content `sha256` within `directory`.
[[nodiscard]] std::filesystem::path check_record_file(const std::filesystem::path& directory,
                                                      std::string_view sha256);

// K1 if `directory` ("<data>/checked") has no record that these bytes have passed a check of this
// major version of the ABI. A record counts only if no user but root and `user` can have written
// it.
[[nodiscard]] std::optional<Finding> require_check_record(const std::filesystem::path& directory,
                                                          std::string_view sha256, uid_t user);

}  // namespace hearth::plugins
