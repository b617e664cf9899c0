#include "api/http_errors.hpp"

#include "json/json_text.hpp"
#include "protocol/http_error.hpp"

namespace hearth::api {

int http_status(Errc code) noexcept {
  switch (code) {
    case Errc::kInvalidArgument: return 400;
    case Errc::kForbidden: return 403;
    case Errc::kNotFound:
    case Errc::kUnsupported: return 404;
    case Errc::kConflict: return 409;
    case Errc::kTooLarge: return 413;
    case Errc::kLimitExceeded: return 429;
    case Errc::kPlugin:
    case Errc::kFinal:
    case Errc::kUnreadable:
    case Errc::kInternal: return 500;
    case Errc::kClosing:
    case Errc::kUnavailable:
    case Errc::kCancelled: return 503;
    case Errc::kTimeout: return 504;
  }
  return 500;
}

net::HttpResponse error_answer(int status, std::string_view code, std::string_view message) {
  net::HttpResponse response;
  response.status = status;
  response.headers.push_back({"Content-Type", "application/json"});
  if (status == 503) response.headers.push_back({"Retry-After", "1"});
  response.body = protocol::http_error_body(code, message);
  return response;
}

net::HttpResponse methods_answer(std::string_view segment, std::string_view methods) {
  net::HttpResponse response;
  response.headers.push_back({"Content-Type", "application/json"});
  response.body = R"({"class":)";
  append_json_string(response.body, segment);
  response.body += R"(,"methods":)";
  response.body += methods;
  response.body += '}';
  return response;
}

void FailureText::add_trace(net::HttpHeaders& headers) const {
  constexpr std::string_view kName = "traceresponse";
  if (!span_.is_none() && !net::find_header(headers, kName))
    headers.push_back({std::string(kName), span_.text()});
}

std::string FailureText::of(const Error& error) const {
  if (error.code != Errc::kPlugin || shows_all_) return error.message;
  if (span_.is_none()) return "the method failed";
  // Of a traceparent: 00-TRACE-SPAN-FLAGS.
  return "the method failed (trace " + span_.text().substr(3, 32) + ")";
}

}  // namespace hearth::api
