#pragma once
// JSON strings as bytes: the one place that writes them, and the scan that reading and writing
// share.
//
// Frames are built by appending text, not through a document: a reply that is already JSON text
// must not be parsed only to be printed again.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace hearth {

// How many bytes at the front of `text` stand for themselves inside a JSON string: ASCII from space
// on, without the quote and the backslash. Eight at a time; this is the inner loop of every frame.
std::size_t plain_json_bytes(std::string_view text) noexcept;

// Appends `text` to `out` as a JSON string, with its quotes.
//
// Promises  the result is always a valid JSON string: quotes, backslashes and control characters
//           are escaped, and each byte that belongs to no well-formed UTF-8 sequence becomes
//           U+FFFD.
// Bounded   at most 6 bytes for each byte of `text`, and 2.
void append_json_string(std::string& out, std::string_view text);

// JSON text in which each escape that is half of a surrogate pair without the other half has become
// \ufffd; nothing if there is none, which is nearly always. It is as long as `json`, and all else
// stays where it is. Any bytes are fine.
std::optional<std::string> without_lone_surrogates(std::string_view json);

}  // namespace hearth
