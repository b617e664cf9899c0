#pragma once
// Finds members of a JSON object in its text, without building a document.
//
// Most of what a client sends is handed on as text (arguments to a plugin, state to the database),
// so the host needs to know where a member is and that the whole text is JSON, and nothing more.

#include <span>
#include <string>
#include <string_view>

namespace hearth {

// One member to look for. `json` is set by the scan: the text of the value, without the space
// around it, or empty when the object has no such member (a value is never empty text).
struct WantedMember {
  std::string_view name;
  std::string_view json;
};

// Scans `text`, which must be one JSON object and nothing but space around it, and fills in
// `wanted`.
//
// Promises  true exactly when parse_json would accept the text and it is an object. The whole text
//           is checked, not only what is wanted: nesting to kMaxJsonDepth, UTF-8 and escapes of
//           every string, numbers that fit a double. Of a name that occurs twice the last value
//           counts; names are compared after their escapes are resolved. One exception: a byte
//           order mark is refused.
// Failure   false; `wanted` is then without meaning.
// Lifetime  the slices point into `text`.
// Bounded   one pass, no allocation (unless a name is written with escapes), no recursion.
bool scan_json_object(std::string_view text, std::span<WantedMember> wanted);

// The same for text that must be recognised although it may have to be refused: what JavaScript's
// JSON.parse takes passes, but for lone surrogates (without_lone_surrogates()). So nesting and
// numbers have no bound, and parse_json may refuse a wanted value.
// Bounded   one pass, no recursion, and one bit of memory for each level beyond kMaxJsonDepth.
bool scan_unbounded_json_object(std::string_view text, std::span<WantedMember> wanted);

// Whether `text` is one JSON value and nothing but space around it. Same promises and bounds as
// above.
bool is_json(std::string_view text);

// The characters of a JSON string, given its text with the quotes.
//
// Requires  text that scan_json_object has accepted as a value, or as part of one.
std::string decode_json_string(std::string_view json);

}  // namespace hearth
