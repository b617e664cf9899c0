#pragma once
// Answers of /objects: the one shape of results and errors, and the answer to a call.

#include "base/error.hpp"
#include "net/http.hpp"
#include "runtime/call_sink.hpp"
#include "runtime/class_registry.hpp"

#include <memory>
#include <string>
#include <string_view>

namespace hearth::api {

// {"success":true,"data":X,"result":X}. `json`: a JSON value, or empty for null.
[[nodiscard]] net::HttpResponse object_result(std::string_view json, int status = 200);

// {"success":true,"data":X}
[[nodiscard]] net::HttpResponse object_data(std::string_view json, int status = 200);

// {"success":true,"data":X,"next":N}: a page, and the cursor of the next page, as JSON values.
[[nodiscard]] net::HttpResponse object_page(std::string_view data, std::string_view next);

// {"success":false,"error":text,"code":code,"retryable":...}. A 429 or 503 is retryable, and has
// Retry-After.
[[nodiscard]] net::HttpResponse object_error(int status, std::string_view code,
                                             std::string_view text);

// An error that the runtime, or a method of the object, has reported:
//   kInvalidArgument          400 invalid_argument
//   kForbidden                403 forbidden
//   kNotFound, kUnsupported   404 not_found
//   kConflict                 409 conflict
//   kTooLarge                 413 limit_exceeded
//   kLimitExceeded            429 limit_exceeded
//   kPlugin                   500 method_error
//   kInternal                 500 internal
//   kUnavailable, kClosing, kCancelled   503 sandbox_unavailable
//   kTimeout                  504 call_timeout
// The text of a failure inside the object's code is as api/http_errors.hpp says.
[[nodiscard]] net::HttpResponse object_error(const Error& error);

// The same for a call that ran. A limit that its method has met is not retryable: the method would
// do the same again, and what it wrote before it failed is stored.
[[nodiscard]] net::HttpResponse call_error(const Error& error);

// The same for a request that is no call: kNotFound is 404 object_not_found.
[[nodiscard]] net::HttpResponse object_refusal(const Error& error);

// 404 class_not_found: the class does not exist, or has no objects.
[[nodiscard]] net::HttpResponse no_such_class();

// An error of the other paths, {"error":{"code","message"}}, in the shape of /objects, with the
// same status and headers. Any other response stays as it is.
[[nodiscard]] net::HttpResponse as_object_error(net::HttpResponse response);

// The target of a call, for its answer.
struct ObjectCallee {
  std::string segment;
  std::string method;
  bool has_key = false;  // the call has an Idempotency-Key
};

// The sink that answers `exchange`. It sends no parts of a streamed answer: the end is the answer.
//
//   Statuses  Those of call_error(). A call with a key has also those of
//             runtime::CallSink::finish(): 409 call_in_progress or call_interrupted, 422
//             idempotency_key_reused, 429 limit_exceeded.
//             404 invalid_method: the call ended with kNotFound, and the class lists its methods
//             without this one.
//   Threads   The object's shard.
//   Lifetime  `classes` outlives the sink. If the sink is dropped without an answer, the client
//             gets a 500.
[[nodiscard]] std::unique_ptr<runtime::CallSink> make_object_answer(
    std::shared_ptr<net::HttpExchange> exchange, const runtime::ClassRegistry& classes,
    ObjectCallee callee);

// Whether the class lists its methods, and has none of this name. `methods`: JSON of
// runtime::AgentClass::methods().
[[nodiscard]] bool lacks_method(std::string_view methods, std::string_view name);

}  // namespace hearth::api
