#include "protocol/object_address.hpp"

#include "base/http_token.hpp"
#include "json/json_scanner.hpp"
#include "json/json_text.hpp"
#include "protocol/agent_address.hpp"
#include "protocol/request_query.hpp"

#include <array>

namespace hearth::protocol {
namespace {

constexpr std::string_view kDigits = "0123456789ABCDEF";
// Besides control characters and bytes that are not ASCII.
constexpr std::string_view kEncoded = " \"#<>?^`{}/%\\";

constexpr std::string_view kSpace = " \t\r\n";  // of JSON

bool is_encoded(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte < 0x20 || byte >= 0x7f || kEncoded.find(c) != std::string_view::npos;
}

}  // namespace

std::string object_name(std::string_view id) {
  return object_name_of_text(percent_decode(id));
}

std::string object_name_of_text(std::string_view id) {
  std::string name;
  for (const char c : id) {
    if (!is_encoded(c)) {
      name += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    name += '%';
    name += kDigits[byte >> 4U];
    name += kDigits[byte & 0xfU];
  }
  return name;
}

Result<std::string> reachable_object_name(std::string_view id, std::size_t max_name_bytes) {
  std::string name = object_name(id);
  const std::string_view problem = name_problem(name, max_name_bytes);
  if (!problem.empty()) return Error{Errc::kInvalidArgument, std::string(problem)};
  return name;
}

std::string object_id(std::string_view name) {
  return percent_decode(name);
}

std::string positional_arguments(std::string_view json) {
  json = trimmed(json, kSpace);
  if (json.empty()) return "[]";
  if (json.starts_with('[')) return std::string(json);
  return '[' + std::string(json) + ']';
}

Result<ObjectCall> read_object_call(std::string_view body) {
  const auto mended = without_lone_surrogates(body);
  if (mended) body = *mended;
  std::array<WantedMember, 2> members{{{"method", {}}, {"args", {}}}};
  const auto& [method, args] = members;
  if (!scan_json_object(body, members))
    return Error{Errc::kInvalidArgument, "the body must be a JSON object"};
  if (!method.json.starts_with('"'))
    return Error{Errc::kInvalidArgument, "the body must name the method: {\"method\": \"...\"}"};
  return ObjectCall{decode_json_string(method.json), positional_arguments(args.json)};
}

Result<std::string> read_object_arguments(std::string_view body) {
  const auto mended = without_lone_surrogates(body);
  if (mended) body = *mended;
  if (!trimmed(body, kSpace).empty() && !is_json(body))
    return Error{Errc::kInvalidArgument, "the body must be JSON, or empty"};
  return positional_arguments(body);
}

std::string object_success(std::string_view json) {
  if (json.empty()) json = "null";
  std::string text = R"({"success":true,"data":)";
  text.reserve(text.size() + 2 * json.size() + 16);
  text += json;
  text += R"(,"result":)";
  text += json;
  text += '}';
  return text;
}

std::string object_data(std::string_view json) {
  return R"({"success":true,"data":)" + std::string(json) + '}';
}

std::string object_failure(std::string_view code, std::string_view text, bool is_retryable) {
  std::string body = R"({"success":false,"error":)";
  append_json_string(body, text);
  body += R"(,"code":)";
  append_json_string(body, code);
  body += is_retryable ? R"(,"retryable":true})" : R"(,"retryable":false})";
  return body;
}

}  // namespace hearth::protocol
