#pragma once
// Writes JSON strings, and has the scan that reading and writing share.
//
// The host builds frames by appending text, without a document: a reply that is already JSON text
// is not parsed and printed again.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace hearth {

// The number of bytes at the front of `text` that need no escape in a JSON string: ASCII from space
// on, without the quote and the backslash. Reads eight bytes at a time: it is the inner loop of
// every frame.
std::size_t plain_json_bytes(std::string_view text) noexcept;

// Appends `text` to `out` as a JSON string, with its quotes.
//
// Promises  the result is always a valid JSON string: quotes, backslashes and control characters
//           are escaped, and each byte of malformed UTF-8 becomes U+FFFD.
// Bounded   at most 6 bytes for each byte of `text`, and 2 more.
void append_json_string(std::string& out, std::string_view text);

// `json` with \ufffd for each escape that is a lone surrogate (half of a pair). Nothing if there is
// none, which is the usual case. The length and all other bytes stay the same. Accepts any bytes.
std::optional<std::string> without_lone_surrogates(std::string_view json);

}  // namespace hearth
