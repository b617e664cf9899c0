#include "protocol/http_error.hpp"

#include "json/json_text.hpp"

namespace hearth::protocol {

std::string http_error_body(std::string_view code, std::string_view message) {
  std::string body;
  body.reserve(code.size() + message.size() + 40);
  body += R"({"error":{"code":)";
  append_json_string(body, code);
  body += R"(,"message":)";
  append_json_string(body, message);
  body += "}}";
  return body;
}

std::string http_error_body(const Error& error) {
  return http_error_body(to_string(error.code), error.message);
}

}  // namespace hearth::protocol
