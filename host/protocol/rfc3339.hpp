#pragma once
// Times as clients write them: RFC 3339, such as 2026-02-16T00:00:00Z.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hearth::protocol {

// In UTC, with milliseconds: "2026-02-16T00:00:00.000Z". For times from 1970 to 9999.
std::string rfc3339(std::int64_t unix_ms);

// Unix milliseconds of a date-time (RFC 3339, 5.6) of the years 1970 to 9999. Digits beyond
// milliseconds are cut off; a leap second becomes the next second. Nothing if the text is not a
// date-time, or the day does not exist.
std::optional<std::int64_t> parse_rfc3339(std::string_view text);

}  // namespace hearth::protocol
