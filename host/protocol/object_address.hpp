#pragma once
// The object that a request names, and the content of a call: /objects/{class}/{id}[/...]

#include "base/error.hpp"

#include <cstddef>
#include <string>
#include <string_view>

namespace hearth::protocol {

// The agent's name for an object's id. `id` is a segment of a path, percent-encoded in any way.
//
//   "user-1"                "user-1"
//   "u/1", "u%2f1"          "u%2F1": characters that a segment cannot hold are encoded
//   "a b", "a%20b"          "a%20b"
//
// The id is decoded, and encoded again as browsers encode a path (WHATWG URL, path percent-encode
// set). `/`, `%` and `\`, which a segment cannot hold, are encoded as well; hexadecimal digits are
// in upper case. So all spellings of an id name one object, and a browser that puts the id into
// /agents/{class}/{id} reaches the same object.
std::string object_name(std::string_view id);
// The same for an id that is not from a path: percent signs are ordinary characters.
std::string object_name_of_text(std::string_view id);
// object_name(), if clients can reach an agent of this name.
//   Failure   kInvalidArgument, with the sentence of name_problem().
Result<std::string> reachable_object_name(std::string_view id, std::size_t max_name_bytes);
// The id, for people: the name decoded.
std::string object_id(std::string_view name);

// A call as read from its body.
struct ObjectCall {
  std::string method;
  std::string arguments;  // a JSON array
};

// The argument list for a value: an array stays as it is, any other value becomes the only
// argument, and empty text becomes no arguments. `json` is a JSON value, or empty.
std::string positional_arguments(std::string_view json);

// {"method": text, "args": any value}. Other members are ignored.
//   Failure   kInvalidArgument: it is not a JSON object, or has no method.
Result<ObjectCall> read_object_call(std::string_view body);
// The body is the value of the arguments, or empty.
//   Failure   kInvalidArgument: it is not JSON.
Result<std::string> read_object_arguments(std::string_view body);

// {"success":true,"data":X,"result":X}. `json` is a JSON value, or empty for null.
std::string object_success(std::string_view json);
// {"success":true,"data":X}
std::string object_data(std::string_view json);
// {"success":false,"error":"text","code":"code","retryable":false}
std::string object_failure(std::string_view code, std::string_view text, bool is_retryable);

}  // namespace hearth::protocol
