#pragma once
// Parses and prints durations, sizes, numbers and addresses, in the form of configuration files and
// the command line.

#include "base/error.hpp"
#include "config/config.hpp"

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace hearth::config {

// The form that each parser expects, as its messages say it.
inline constexpr std::string_view kDurationForm = "a duration such as 500ms, 30s, 5m or 1h";
inline constexpr std::string_view kSizeForm = "a size such as 4096, 64KiB or 1MiB";
inline constexpr std::string_view kCountForm = "a whole number";

// All parsers
//   Promises  Take the whole text or refuse it: no space, no sign, no fraction, no second part.
//   Failure   kInvalidArgument. The message begins with "expected", quotes the text, and has no
//             full stop, so that a key's name can stand before it.

// A whole number and its unit: "500ms", "30s", "5m", "1h". Only "0" needs no unit: a forgotten unit
// could be wrong by a factor of a thousand.
[[nodiscard]] Result<std::chrono::milliseconds> parse_duration(std::string_view text);

// Bytes: "4096", "64KiB", "1MiB", "2GiB". KB and MB are refused, because their meaning is unclear.
[[nodiscard]] Result<std::uint64_t> parse_size(std::string_view text);

// Decimal digits only.
[[nodiscard]] Result<std::uint64_t> parse_count(std::string_view text);

// "HOST:PORT": an IPv4 address, a host name, or an IPv6 address in brackets. With port 0 the system
// chooses one. Names are not looked up here. A missing host is refused: the operator must say which
// addresses the server listens on.
[[nodiscard]] Result<ListenAddress> parse_listen_address(std::string_view text);

// The shortest text that parse_duration() reads as the same value: "1h", "1500ms", "0s".
[[nodiscard]] std::string format_duration(std::chrono::milliseconds duration);

// "64KiB", "1000" (bytes).
[[nodiscard]] std::string format_size(std::uint64_t bytes);

// "127.0.0.1:8787", "[::1]:0".
[[nodiscard]] std::string to_string(const ListenAddress& address);

}  // namespace hearth::config
