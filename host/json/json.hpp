#pragma once
// JSON text <-> nlohmann::json, instantiated once, with the limits that text from outside needs.

#include "base/error.hpp"

// A Json turns into another type only through get<T>(). With nlohmann's implicit conversions a Json
// cannot be returned as a Result<Json>, and a wrong type throws where no conversion is visible.
// NOLINTNEXTLINE(readability-identifier-naming): the name is nlohmann's.
#define JSON_USE_IMPLICIT_CONVERSIONS 0
#include <hearth/json_rules.h>

#include <nlohmann/json.hpp>

#include <string>
#include <string_view>

namespace hearth {

using Json = nlohmann::json;

// Deeper text is refused, because dump() recurses. The SDK has the same bound.
inline constexpr int kMaxJsonDepth = HEARTH_MAX_JSON_DEPTH;

// The value, or kInvalidArgument with the reason and the byte offset, counted from 0. Refuses
// invalid UTF-8, NUL, trailing text, numbers past a double's range, and more than `max_depth`
// levels of objects and arrays. A duplicate key keeps its last value. The message quotes nothing of
// the text, so it may be shown to the sender.
Result<Json> parse_json(std::string_view text, int max_depth = kMaxJsonDepth);

// The same for a client's text, in which an escape of half a surrogate pair is U+FFFD, as in the
// frames of a WebSocket: JavaScript writes such escapes.
Result<Json> parse_client_json(std::string_view text, int max_depth = kMaxJsonDepth);

// The value of a document that the host has built around values that parse_json() or is_json() has
// accepted. It may have a few levels more than kMaxJsonDepth. kInternal: it is not JSON, which is a
// fault of the server.
Result<Json> parse_host_json(std::string_view text);

// Compact text. Invalid UTF-8 inside strings becomes U+FFFD; infinities and NaN become null. It
// recurses once a level. Text from outside has at most kMaxJsonDepth levels and those that the host
// adds; a caller that builds a value itself must respect the same bound.
std::string dump_json(const Json& value);

// An object's member of this name if it is a string; otherwise, or if `object` is not an object, an
// empty text.
std::string text_member(const Json& object, const char* name);

}  // namespace hearth
