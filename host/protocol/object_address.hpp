#pragma once
// Which object a request is for, and what a call says: /objects/{class}/{id}[/...]

#include "base/error.hpp"

#include <cstddef>
#include <string>
#include <string_view>

namespace hearth::protocol {

// The name of the agent that an object's id stands for. `id` is a segment of a path,
// percent-encoded in any way.
//
//   "user-1"                "user-1"
//   "u/1", "u%2f1"          "u%2F1": what a segment of a path cannot hold is encoded
//   "a b", "a%20b"          "a%20b"
//
// The id is decoded, and encoded again as browsers encode a path (WHATWG URL, path percent-encode
// set), and `/`, `%` and `\` as well, which a segment cannot hold; digits are in upper case. So all
// spellings of an id name one object, and a browser that puts the id into /agents/{class}/{id}
// reaches the same one.
std::string object_name(std::string_view id);
// The same for an id that is no part of a path: percent signs stand for themselves.
std::string object_name_of_text(std::string_view id);
// object_name(), as long as clients reach an agent of this name.
//   Failure   kInvalidArgument, with the sentence of name_problem().
Result<std::string> reachable_object_name(std::string_view id, std::size_t max_name_bytes);
// The id, for people: the name decoded.
std::string object_id(std::string_view name);

// A call as its body has it.
struct ObjectCall {
  std::string method;
  std::string arguments;  // a JSON array
};

// The arguments that a value stands for: an array is taken as it is, any other value is the one
// argument, and nothing (empty text) is none. `json` is a JSON value, or empty.
std::string positional_arguments(std::string_view json);

// {"method": text, "args": any value}. Other members are ignored.
//   Failure   kInvalidArgument: it is no JSON object, or has no method.
Result<ObjectCall> read_object_call(std::string_view body);
// The body is the value of the arguments, or empty.
//   Failure   kInvalidArgument: it is no JSON.
Result<std::string> read_object_arguments(std::string_view body);

// {"success":true,"data":X,"result":X}. `json` is a JSON value, or empty for null.
std::string object_success(std::string_view json);
// {"success":true,"data":X}
std::string object_data(std::string_view json);
// {"success":false,"error":"text","code":"code","retryable":false}
std::string object_failure(std::string_view code, std::string_view text, bool is_retryable);

}  // namespace hearth::protocol
