#pragma once
// The query of a request target, read as browsers write it (application/x-www-form-urlencoded).

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace hearth::protocol {

// Resolves %XX. A percent sign without two hexadecimal digits after it stays, as in browsers. The
// result may hold any byte, NUL included, and need not be UTF-8.
std::string percent_decode(std::string_view text);

// The value of the first pair named `key`, with `+` and %XX resolved. `query` has no `?`.
//
// Promises  nothing if there is no such pair, or its value is longer than `max_bytes` as written.
//           A pair without `=` has the empty value. The bytes need not be UTF-8.
// Bounded   memory for one value of at most `max_bytes`.
std::optional<std::string> query_value(std::string_view query, std::string_view key,
                                       std::size_t max_bytes);

// The id that the client chose for its connection (`_pk`): 1 to 128 printable ASCII bytes. Nothing
// if it is absent or has another form; the caller then makes one. The id need not be unique, and
// proves nothing.
inline constexpr std::size_t kMaxConnectionIdBytes = 128;
std::optional<std::string> connection_id(std::string_view query);

// Whether the client asks for another transport (`__agents_transport`). It cannot understand
// Hearth's frames, so the caller must close it with kClosePolicyViolation.
bool asks_for_other_transport(std::string_view query);

}  // namespace hearth::protocol
