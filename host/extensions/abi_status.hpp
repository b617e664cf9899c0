#pragma once
// The two languages of failure: Errc inside the server, HEARTH_E_* across the plugin ABI.

#include "base/error.hpp"

#include <hearth/abi.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace hearth::extensions {

// The status that a plugin sees. kNotFound becomes `missing`, for the functions that answer GONE
// where the runtime says that something does not exist.
[[nodiscard]] hearth_status to_status(Errc code,
                                      hearth_status missing = HEARTH_E_NOT_FOUND) noexcept;

// `missing` for the results of an operation: GONE, but a call of another agent ends with NOT_FOUND.
[[nodiscard]] hearth_status missing_of(std::uint32_t operation) noexcept;

// The code for a status that a plugin gave. Statuses that no plugin should give, and unknown ones,
// count as kPlugin. Not for HEARTH_OK and above.
[[nodiscard]] Errc to_errc(hearth_status status) noexcept;

// "HEARTH_E_INVALID", or the number for one that does not exist.
[[nodiscard]] std::string status_name(hearth_status status);

}  // namespace hearth::extensions
