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

// {"success":true,"data":X,"next":N}: a page, and what the next one begins with, as JSON values.
[[nodiscard]] net::HttpResponse object_page(std::string_view data, std::string_view next);

// {"success":false,"error":text,"code":code,"retryable":...}. A 429 or 503 is worth another try,
// and says after how long.
[[nodiscard]] net::HttpResponse object_error(int status, std::string_view code,
                                             std::string_view text);

// What the runtime, or a method of the object, has reported:
//   kNotFound, kUnsupported   404 not_found       kTimeout                        504 call_timeout
//   kInvalidArgument          400 invalid_argument   kUnavailable, kClosing, kCancelled
//   kForbidden                403 forbidden                                503 sandbox_unavailable
//   kConflict                 409 conflict        kPlugin                         500 method_error
//   kLimitExceeded            429 limit_exceeded  kInternal                       500 internal
//   kTooLarge                 413 limit_exceeded
// What went wrong inside of the object's code (kPlugin) is for its author, and is not shown.
[[nodiscard]] net::HttpResponse object_error(const Error& error);

// The same of a call that ran. A limit that its method has met is not worth another try: the method
// would do once more what it did before, and what it wrote then has stayed.
[[nodiscard]] net::HttpResponse call_error(const Error& error);

// What is said of a class that has no objects.
inline constexpr std::string_view kNoSuchClass = "there are no objects of such a class";

// The same for what is asked of an object beside calls: kNotFound is 404 object_not_found, or with
// the message kNoSuchClass 404 class_not_found.
[[nodiscard]] net::HttpResponse object_refusal(const Error& error);

// An error of the other paths, {"error":{"code","message"}}, as /objects says it, with the same
// status and headers. Any other response stays as it is.
[[nodiscard]] net::HttpResponse as_object_error(net::HttpResponse response);

// What a call was for, so that its answer can be told.
struct ObjectCallee {
  std::string segment;
  std::string method;
  bool has_key = false;  // an Idempotency-Key
};

// The sink that answers `exchange`. Parts of a streamed answer are not sent: its end is the answer.
//
//   Statuses  call_error(), and for a call with a key what runtime::CallSink::finish() says: 409
//             call_in_progress or call_interrupted, 422 idempotency_key_reused, 429 limit_exceeded.
//             404 invalid_method: no method of the class has this name, as far as the class lists
//             its methods.
//   Threads   The object's shard.
//   Lifetime  `classes` outlives the sink. Dropped without an answer, the client gets a 500.
[[nodiscard]] std::unique_ptr<runtime::CallSink> make_object_answer(
    std::shared_ptr<net::HttpExchange> exchange, const runtime::ClassRegistry& classes,
    ObjectCallee callee);

// Whether the class lists its methods, and has none of this name. `methods`: of
// runtime::AgentClass::methods().
[[nodiscard]] bool lacks_method(std::string_view methods, std::string_view name);

}  // namespace hearth::api
