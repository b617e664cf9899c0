#pragma once
// Spans as OTLP/HTTP sends them in JSON.
// https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding

#include "extensions/open_span.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace hearth::server {

// An ExportTraceServiceRequest. Ids are hexadecimal, times and integers are texts.
[[nodiscard]] std::string otlp_json(std::string_view service,
                                    std::span<const extensions::SpanRecord> spans);

// The spans that an answer of status 200 says were not taken (partialSuccess); 0 for any other
// text.
[[nodiscard]] std::uint64_t rejected_spans(std::string_view answer);

}  // namespace hearth::server
