#include "server/otlp_json.hpp"

#include "json/json.hpp"
#include "json/json_text.hpp"

#include <charconv>
#include <chrono>
#include <type_traits>

namespace hearth::server {
namespace {

using extensions::SpanRecord;
using extensions::SpanValue;
using std::chrono::nanoseconds;

constexpr int kFailed = 2;  // STATUS_CODE_ERROR

void append_value(std::string& json, const SpanValue& value) {
  std::visit(
      [&json](const auto& it) {
        using Value = std::decay_t<decltype(it)>;
        if constexpr (std::is_same_v<Value, std::string>) {
          json += R"({"stringValue":)";
          append_json_string(json, it);
        } else if constexpr (std::is_same_v<Value, std::int64_t>) {
          json += R"({"intValue":")" + std::to_string(it) + '"';
        } else if constexpr (std::is_same_v<Value, bool>) {
          json += it ? R"({"boolValue":true)" : R"({"boolValue":false)";
        } else {
          json += R"({"doubleValue":)" + dump_json(Json(it));
        }
      },
      value);
  json += '}';
}

void append_attribute(std::string& json, std::string_view key, const SpanValue& value) {
  json += json.back() == '[' ? R"({"key":)" : R"(,{"key":)";
  append_json_string(json, key);
  json += R"(,"value":)";
  append_value(json, value);
  json += '}';
}

void append_span(std::string& json, const SpanRecord& span) {
  // 00-TRACE-SPAN-FLAGS
  const std::string ids = span.span.text();
  json += R"({"traceId":")";
  json.append(ids, 3, 32) += R"(","spanId":")";
  json.append(ids, 36, 16) += '"';
  if (span.span.parent != 0) {
    extensions::Span above = span.span;
    above.id = span.span.parent;
    json += R"(,"parentSpanId":")";
    json.append(above.text(), 36, 16) += '"';
  }
  const auto began = std::chrono::duration_cast<nanoseconds>(span.began.time_since_epoch());
  json += R"(,"name":)";
  append_json_string(json, span.name);
  json += R"(,"kind":)" + std::to_string(static_cast<int>(span.kind));
  json += R"(,"startTimeUnixNano":")" + std::to_string(began.count());
  json += R"(","endTimeUnixNano":")" + std::to_string((began + span.length).count());
  json += R"(","attributes":[)";
  for (const auto& [key, value] : span.attributes) append_attribute(json, key, value);
  if (!span.error.empty()) append_attribute(json, "error.type", span.error);
  json += ']';
  if (!span.error.empty()) json += R"(,"status":{"code":)" + std::to_string(kFailed) + '}';
  json += '}';
}

}  // namespace

std::string otlp_json(std::string_view service, std::span<const SpanRecord> spans) {
  std::string json = R"({"resourceSpans":[{"resource":{"attributes":[)";
  append_attribute(json, "service.name", std::string(service));
  append_attribute(json, "service.version", std::string(HEARTH_VERSION));
  json +=
      R"(]},"scopeSpans":[{"scope":{"name":"hearth","version":")" HEARTH_VERSION R"("},"spans":[)";
  for (const SpanRecord& span : spans) {
    if (json.back() != '[') json += ',';
    append_span(json, span);
  }
  return json + "]}]}]}";
}

// A number of 64 bits is a text, but a number is accepted too.
std::uint64_t rejected_spans(std::string_view answer) {
  const auto json = parse_json(answer);
  if (!json || !json->is_object()) return 0;
  const auto partial = json->find("partialSuccess");
  if (partial == json->end() || !partial->is_object()) return 0;
  const auto count = partial->find("rejectedSpans");
  if (count == partial->end()) return 0;
  if (count->is_number_unsigned()) return count->get<std::uint64_t>();
  std::uint64_t number = 0;
  if (count->is_string()) {
    const auto& text = count->get_ref<const std::string&>();
    std::from_chars(text.data(), text.data() + text.size(), number);
  }
  return number;
}

}  // namespace hearth::server
