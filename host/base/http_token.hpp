#pragma once
// The small words of HTTP (RFC 9110): one answer to what a name is, for all layers that meet one.
// Pure functions.

#include <string_view>

namespace hearth {

// A method or a header's name (RFC 9110 section 5.6.2): not empty, no separators.
[[nodiscard]] bool is_http_token(std::string_view text) noexcept;

// What may stand as a header's value (RFC 9110 section 5.5); empty is fine. No control character
// but the tab: a line feed would let a value be another header.
[[nodiscard]] bool is_http_field_value(std::string_view text) noexcept;

// ASCII only, as HTTP wants it.
[[nodiscard]] bool equal_ignoring_case(std::string_view a, std::string_view b) noexcept;

// Whether no request of an agent may have this method, in any case, as in the Fetch standard:
// CONNECT is not about a resource, and the answer to TRACE or TRACK shows the headers of the
// request.
[[nodiscard]] bool is_forbidden_http_method(std::string_view method) noexcept;

// Whether the server alone says this in a response: how the message is framed, what becomes of the
// connection, the date, and the name of the server. The name may be in any case.
[[nodiscard]] bool is_host_owned_header(std::string_view name) noexcept;

}  // namespace hearth
