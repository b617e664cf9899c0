#pragma once
// Names and values in HTTP (RFC 9110): one definition for all layers. Pure functions.

#include <string_view>

namespace hearth {

// A method or a header's name (RFC 9110 section 5.6.2): not empty, no separators.
[[nodiscard]] bool is_http_token(std::string_view text) noexcept;

// Whether the text may be a header's value (RFC 9110 section 5.5). It may be empty. The tab is the
// only control character: a line feed in a value would start another header.
[[nodiscard]] bool is_http_field_value(std::string_view text) noexcept;

// Without `blanks` at both ends (RFC 9110 section 5.6.3).
[[nodiscard]] std::string_view trimmed(std::string_view text,
                                       std::string_view blanks = " \t") noexcept;

// ASCII only, as in HTTP.
[[nodiscard]] bool equal_ignoring_case(std::string_view a, std::string_view b) noexcept;

// Whether the Fetch standard forbids this method, in upper or lower case; agents' requests must not
// use it. CONNECT is not about a resource, and the answer to TRACE or TRACK shows the request's
// headers.
[[nodiscard]] bool is_forbidden_http_method(std::string_view method) noexcept;

// Whether only the host sets this header of a request that an agent sends: the receiver, the
// message's framing, and the connection. The name may be in upper or lower case.
[[nodiscard]] bool is_host_owned_request_header(std::string_view name) noexcept;

// Whether only the server sets this header of a response: the message's framing, the connection,
// the date and the server's name. The name may be in upper or lower case.
[[nodiscard]] bool is_host_owned_header(std::string_view name) noexcept;

}  // namespace hearth
