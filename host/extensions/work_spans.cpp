#include "extensions/work_spans.hpp"

#include "extensions/durable_work.hpp"
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
  if (text.size() > WorkSpans::kMostTextBytes) return std::nullopt;
  return text;
}

using Attributes = std::vector<std::pair<std::string, SpanValue>>;

std::optional<Attributes> read_attributes(std::string_view json) {
  const auto object = parse_json(json, 1);
  if (!object || !object->is_object() || object->size() > WorkSpans::kMostAttributes)
    return std::nullopt;
  Attributes attributes;
  for (const auto& [key, value] : object->items()) {
    auto read = span_value(value);
    if (!read || key.empty() || key.size() > WorkSpans::kMostKeyBytes) return std::nullopt;
    attributes.emplace_back(key, *std::move(read));
  }
  return attributes;
}

}  // namespace

void WorkSpans::begin(SpannedWork work, std::string_view id, std::string_view name) {
  const bool is_operation = work == SpannedWork::kOperation;
  OpenSpan span = agent_.ports().open_span(agent_.calls().trace(),
                                           is_operation ? SpanKind::kClient : SpanKind::kInternal);
  if (!span.is_open()) return;
  span.name(std::string(name));
  span.set("hearth.agent.class", agent_.key().agent_class);
  span.set("hearth.agent.name", agent_.key().name);
  span.set(is_operation ? "hearth.operation.id" : "hearth.fiber.id", std::string(id));
  span.set(is_operation ? "hearth.operation.kind" : "hearth.fiber.name", std::string(name));
  running_.at(static_cast<std::size_t>(work)).insert_or_assign(std::string(id), std::move(span));
}

WorkSpans::~WorkSpans() {
  for (ById& all : running_) {
    for (auto& [id, span] : all) {
      span.fail("interrupted");
      span.end();
    }
  }
}

void WorkSpans::end(SpannedWork work, std::string_view id, std::string_view state,
                    bool has_failed) {
  ById& all = running_.at(static_cast<std::size_t>(work));
  const auto found = all.find(id);
  if (found == all.end()) return;
  OpenSpan& span = found->second;
  span.set(work == SpannedWork::kOperation ? "hearth.operation.state" : "hearth.fiber.state",
           std::string(state));
  // A run that failed and is tried again has no other state than to be pending.
  if (has_failed) span.fail(state == "pending" ? "error" : state);
  span.end();
  all.erase(found);
}

void WorkSpans::end_aborted() {
  durable::Fibers& fibers = agent_.work().fibers();
  std::vector<std::string> aborted;
  for (const auto& [id, span] : running_.at(static_cast<std::size_t>(SpannedWork::kFiber)))
    if (fibers.recovery().now_of(id) == durable::FiberNow::kNothing) aborted.push_back(id);
  for (const std::string& id : aborted)
    end(SpannedWork::kFiber, id, to_string(durable::FiberStatus::kAborted), true);
}

Result<void> WorkSpans::describe(std::string_view id, std::string_view name,
                                 std::string_view attributes) {
  auto read = read_attributes(attributes);
  if (!read || name.size() > kMostTextBytes)
    return Error{Errc::kInvalidArgument,
                 "the attributes of a span are a JSON object with at most 32 texts, numbers and "
                 "booleans, with keys up to 64 bytes and texts up to 256"};
  OpenSpan* const span = find(SpannedWork::kOperation, id);
  if (span == nullptr) return {};
  if (!name.empty()) span->name(std::string(name));
  for (auto& [key, value] : *read) span->set(key, std::move(value));
  return {};
}

OpenSpan* WorkSpans::find(SpannedWork work, std::string_view id) {
  ById& all = running_.at(static_cast<std::size_t>(work));
  const auto found = all.find(id);
  return found == all.end() ? nullptr : &found->second;
}

Span WorkSpans::span_of(SpannedWork work, std::string_view id) {
  const OpenSpan* const span = find(work, id);
  return span == nullptr ? Span() : span->span();
}

}  // namespace hearth::extensions
