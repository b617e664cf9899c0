#pragma once
// Two forms of failure: Errc inside the server, HEARTH_E_* across the plugin ABI.

#include "base/error.hpp"

#include <hearth/abi.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace hearth::extensions {

// The status that a plugin sees. kNotFound becomes `missing`: some functions return GONE for it.
[[nodiscard]] hearth_status to_status(Errc code,
                                      hearth_status missing = HEARTH_E_NOT_FOUND) noexcept;

// `missing` for the results of an operation: GONE, and NOT_FOUND for a call of another agent.
[[nodiscard]] hearth_status missing_of(std::uint32_t operation) noexcept;

// The code for a status that a plugin has returned. Statuses that plugins must not return, and
// unknown ones, become kPlugin. Not for HEARTH_OK and above.
[[nodiscard]] Errc to_errc(hearth_status status) noexcept;

// "HEARTH_E_INVALID"; for an unknown status, its number.
[[nodiscard]] std::string status_name(hearth_status status);

}  // namespace hearth::extensions
