#pragma once
// JSON text <-> nlohmann::json, instantiated once, with the limits that text from outside needs.

#include "base/error.hpp"

// A Json turns into another type only where get<T>() says so: with the implicit conversions a Json
// cannot even be returned as a Result<Json>, and a wrong type would throw from an innocent line.
// NOLINTNEXTLINE(readability-identifier-naming): the name is nlohmann's.
#define JSON_USE_IMPLICIT_CONVERSIONS 0
#include <hearth/json_rules.h>

#include <nlohmann/json.hpp>

#include <string>
#include <string_view>

namespace hearth {

using Json = nlohmann::json;

// Deeper text is refused: dump() recurses, and a stack is finite. The SDK's bound is the same.
inline constexpr int kMaxJsonDepth = HEARTH_MAX_JSON_DEPTH;

// The value, or kInvalidArgument with the reason and the byte offset, counted from 0. Refuses
// invalid UTF-8, NUL, trailing text, numbers past a double's range and nesting beyond `max_depth`
// levels of objects and arrays; a duplicate key keeps its last value. The message quotes nothing of
// the text, so it may be shown to whoever sent it.
Result<Json> parse_json(std::string_view text, int max_depth = kMaxJsonDepth);

// The value of a document that the host has made: around values that parse_json() or is_json() has
// accepted, which may have used up all of kMaxJsonDepth, and with a few levels of its own.
// kInternal: it is no JSON, and that is no client's fault.
Result<Json> parse_host_json(std::string_view text);

// Compact text. Invalid UTF-8 inside strings is replaced by U+FFFD, never thrown; infinities and
// not-a-number become null. Recurses once a level: what was built from outside text is bounded by
// kMaxJsonDepth and the levels that the host adds, what a program builds must be too.
std::string dump_json(const Json& value);

// An object's member of this name if that is a text; otherwise, and of what is no object, an empty
// text.
std::string text_member(const Json& object, const char* name);

}  // namespace hearth
