#pragma once
// How one log event looks as text, apart from where it is written.

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

// A longer text value is cut, and the line says how many bytes are missing: a log is no place for
// the megabytes that a client may send.
inline constexpr std::size_t kMaxLogValueBytes = 4096;

// "trace", "debug", "info", "warn", "error".
[[nodiscard]] std::string_view to_string(LogLevel level) noexcept;

// Promises  The text has no line feed, no other control character (C0, DEL, C1), no line or
//           paragraph separator and no character that changes the direction of text: those are
//           written as escapes, and malformed UTF-8 is replaced. The caller adds the line's end.

// For people: local time, `name`, then `key=value`; a value is quoted only when it must be, so that
// `file="a b"` cannot be mistaken for two fields. A malformed byte is shown as \xNN.
[[nodiscard]] std::string render_human_line(const LogEvent& event);

// For programs: one JSON object with time (UTC), level and event first. Not-a-number and the
// infinities, which JSON lacks, become strings; a malformed byte becomes U+FFFD.
[[nodiscard]] std::string render_json_line(const LogEvent& event);

}  // namespace hearth
