#include "extensions/operation_spans.hpp"

#include "json/json.hpp"

#include <optional>
#include <utility>
#include <vector>

namespace hearth::extensions {
namespace {

std::optional<SpanValue> span_value(const Json& value) {
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_number_integer()) return value.get<std::int64_t>();
  if (value.is_number()) return value.get<double>();
  if (!value.is_string()) return std::nullopt;
  auto text = value.get<std::string>();
  if (text.size() > OperationSpans::kMostTextBytes) return std::nullopt;
  return text;
}

using Attributes = std::vector<std::pair<std::string, SpanValue>>;

std::optional<Attributes> read_attributes(std::string_view json) {
  const auto object = parse_json(json, 1);
  if (!object || !object->is_object() || object->size() > OperationSpans::kMostAttributes)
    return std::nullopt;
  Attributes attributes;
  for (const auto& [key, value] : object->items()) {
    auto read = span_value(value);
    if (!read || key.empty() || key.size() > OperationSpans::kMostKeyBytes) return std::nullopt;
    attributes.emplace_back(key, *std::move(read));
  }
  return attributes;
}

}  // namespace

void OperationSpans::begin(std::uint64_t operation, std::string_view id, std::string_view kind) {
  OpenSpan span = agent_.ports().open_span(agent_.calls().trace(), SpanKind::kClient);
  if (!span.is_open()) return;
  span.name(std::string(kind));
  span.set("hearth.agent.class", agent_.key().agent_class);
  span.set("hearth.agent.name", agent_.key().name);
  span.set("hearth.operation.id", std::string(id));
  span.set("hearth.operation.kind", std::string(kind));
  running_.insert_or_assign(operation, Running{std::string(id), std::move(span)});
}

void OperationSpans::end(std::uint64_t operation, std::string_view state, bool has_failed) {
  const auto found = running_.find(operation);
  if (found == running_.end()) return;
  found->second.span.set("hearth.operation.state", std::string(state));
  if (has_failed) found->second.span.fail(state);
  found->second.span.end();
  running_.erase(found);
}

Result<void> OperationSpans::describe(std::string_view id, std::string_view name,
                                      std::string_view attributes) {
  auto read = read_attributes(attributes);
  if (!read || name.size() > kMostTextBytes)
    return Error{Errc::kInvalidArgument,
                 "the attributes of a span are a JSON object with at most 32 texts, numbers and "
                 "booleans, with keys up to 64 bytes and texts up to 256"};
  for (auto& [operation, running] : running_) {
    if (running.id != id) continue;
    if (!name.empty()) running.span.name(std::string(name));
    for (auto& [key, value] : *read) running.span.set(key, std::move(value));
  }
  return {};
}

Span OperationSpans::span_of(std::string_view id) const {
  for (const auto& [operation, running] : running_)
    if (running.id == id) return running.span.span();
  return {};
}

}  // namespace hearth::extensions
