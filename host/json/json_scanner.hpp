#pragma once
// Finds members of a JSON object in its text, without building a document; and makes texts that can
// stand in JSON.
//
// The host passes most of a client's JSON on as text (arguments to a plugin, state to the
// database). So it only needs to find members, and to check that the whole text is JSON.

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

// Scans `text`, which must be one JSON object with only space around it, and fills in `wanted`.
//
// Promises  true exactly when parse_json would accept the text and it is an object; only a byte
//           order mark is refused here and accepted there. The whole text is checked: nesting to
//           kMaxJsonDepth, UTF-8 and escapes of every string, numbers that fit a double. If a name
//           occurs twice, the last value counts. Names are compared after escapes are resolved.
// Failure   false; `wanted` then has no meaning.
// Lifetime  the slices point into `text`.
// Bounded   one pass, no recursion; it allocates only for a name that has escapes.
bool scan_json_object(std::string_view text, std::span<WantedMember> wanted);

// The same for text that must be recognised even if the host then refuses it. It accepts what
// JavaScript's JSON.parse accepts, except lone surrogates (without_lone_surrogates()). So nesting
// and numbers have no bound, and parse_json may refuse a wanted value.
// Bounded   one pass, no recursion, and one bit of memory for each level beyond kMaxJsonDepth.
bool scan_unbounded_json_object(std::string_view text, std::span<WantedMember> wanted);

// Whether `text` is one JSON value with only space around it. Promises and bounds as for
// scan_json_object().
bool is_json(std::string_view text);

// The characters of a JSON string, given its text with the quotes.
//
// Requires  text that scan_json_object has accepted as a value, or as part of one.
std::string decode_json_string(std::string_view json);

// The text of failed code, which may be any bytes, so that none is refused for its bytes: those
// that are not UTF-8 become U+FFFD, and a long text is cut.
std::string readable_text(std::string_view text, std::size_t max_bytes);

// The text without space between its tokens, and with one spelling for each string. The order of
// members and the spelling of numbers stay.
//
// Requires  text that is_json() has accepted.
std::string json_in_one_spelling(std::string_view json);

}  // namespace hearth
