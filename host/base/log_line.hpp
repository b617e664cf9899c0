#pragma once
// Renders one log event as text.

#include "base/clock.hpp"
#include "base/logger.hpp"

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace hearth {

// One event, to be rendered. Views are borrowed for the call.
struct LogEvent {
  WallTime time;
  LogLevel level;
  std::string_view name;
  std::span<const LogField> fields;
};

// A longer text value is cut, and the line says how many bytes are missing: a client may send
// megabytes.
inline constexpr std::size_t kMaxLogValueBytes = 4096;

// "trace", "debug", "info", "warn", "error".
[[nodiscard]] std::string_view to_string(LogLevel level) noexcept;

// Promises  No two keys of a line are equal, whatever the fields are called: a second `k` is `k_2`,
//           and so is a field that is called like a part of the line: `time_2`, `level_2`,
//           `event_2`.
//           Each character that needs_escape() (base/escape.hpp) is written as an escape, and
//           malformed UTF-8 is replaced. So an event is one line; the caller adds the line feed.

// For people: local time, level, `name`, then `key=value`. A value has quotes only where they are
// needed, as in `file="a b"`. A malformed byte is shown as \xNN.
[[nodiscard]] std::string render_human_line(const LogEvent& event);

// For programs: one JSON object with time (UTC), level and event first. NaN and the infinities,
// which JSON lacks, become strings; a malformed byte becomes U+FFFD.
[[nodiscard]] std::string render_json_line(const LogEvent& event);

}  // namespace hearth
