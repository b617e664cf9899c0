#include "parts.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <exception>
#include <functional>
#include <utility>

namespace hearth::chat::parts {

const Json* find(const Json& value, std::string_view key) {
  if (!value.is_object()) return nullptr;
  const auto found = value.find(key);
  return found == value.end() ? nullptr : &*found;
}

const std::string& text(const Json& value, std::string_view key) {
  static const std::string none;
  const Json* const field = find(value, key);
  return field != nullptr && field->is_string() ? field->get_ref<const std::string&>() : none;
}

bool is_true(const Json& value, std::string_view key) {
  const Json* const field = find(value, key);
  return field != nullptr && field->is_boolean() && field->get<bool>();
}

bool has_id(const Json& value, std::string_view key) {
  const std::string& id = text(value, key);
  return !id.empty() && id.size() <= kMaxIdBytes;
}

bool is_deeper(const Json& value, int levels) {
  if (!value.is_structured()) return false;
  if (levels == 0) return true;
  return std::ranges::any_of(value, [&](const Json& each) { return is_deeper(each, levels - 1); });
}

void copy(Json& to, const Json& from, std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys) copy_as(to, key, from, key);
}

void copy_as(Json& to, std::string_view to_key, const Json& from, std::string_view from_key) {
  const Json* const field = find(from, from_key);
  if (field != nullptr && !field->is_null()) to[std::string(to_key)] = *field;
}

void merge(Json& to, std::string_view to_key, const Json* from) {
  if (from == nullptr || from->is_null()) return;
  Json& field = to[std::string(to_key)];
  if (field.is_object() && from->is_object())
    field.update(*from, true);
  else
    field = *from;
}

Json& of(Json& message) {
  Json& parts = message["parts"];
  if (!parts.is_array()) parts = Json::array();
  return parts;
}

const Json& of(const Json& message) {
  static const Json none = Json::array();
  const Json* const parts = find(message, "parts");
  return parts != nullptr && parts->is_array() ? *parts : none;
}

bool push(Json& message, Json part) {
  Json& all = of(message);
  if (all.size() >= kMaxParts) return false;
  all.push_back(std::move(part));
  return true;
}

std::int64_t hash(std::string_view text) {
  return std::bit_cast<std::int64_t>(std::hash<std::string_view>()(text));
}

std::size_t piece_end(std::string_view text, std::size_t begin) {
  std::size_t end = std::min(text.size(), begin + kPieceBytes);
  const auto is_inside = [&] {
    return end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U;
  };
  while (end > begin + 1 && is_inside()) --end;
  return end;
}

Json* find_call(Json& message, std::string_view call) {
  Json& all = of(message);
  for (std::size_t i = all.size(); i-- > 0;)
    if (is_tool_part(all[i]) && text(all[i], "toolCallId") == call) return &all[i];
  return nullptr;
}

int progress(const Json& part) {
  static constexpr std::array<std::string_view, 4> kPending = {
      "input-streaming", "input-available", "approval-requested", "approval-responded"};
  const auto found = std::ranges::find(kPending, text(part, "state"));
  return static_cast<int>(found - kPending.begin());
}

Json read(std::string_view json) {
  try {
    return parse_json(json);
  } catch (const std::exception&) {
    return {Json::value_t::discarded};
  }
}

Json as_input(const Json& input) {
  Json object = input.is_string() ? read(input.get_ref<const std::string&>()) : input;
  if (!object.is_object() || is_deeper(object, kMaxValueDepth)) return Json::object();
  return object;
}

void end_input(Json& part) {
  if (const Json* const streamed = find(part, "inputText")) {
    if (!part.contains("input")) part["input"] = as_input(*streamed);
    part.erase("inputText");
  }
}

}  // namespace hearth::chat::parts
