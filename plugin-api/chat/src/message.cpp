#include "parts.hpp"

#include <hearth/chat/message.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace hearth::chat {

namespace {

template <std::size_t kSize>
bool is_one_of(const std::array<std::string_view, kSize>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

constexpr std::array<std::string_view, 3> kRoles = {"system", "user", "assistant"};
constexpr std::array<std::string_view, 3> kSettledStates = {"output-available", "output-error",
                                                            "output-denied"};

std::string_view part_fault(const Json& part) {
  const std::string& type = parts::text(part, "type");
  if (type.empty()) return "A part of a message has no type.";
  if (type == "text" || type == "reasoning") {
    const Json* const text = parts::find(part, "text");
    if (text == nullptr || !text->is_string()) return "A text part of a message has no text.";
  }
  if (!is_tool_part(part)) return {};
  if (!parts::has_id(part, "toolCallId"))
    return "The call of a tool part has no id of 1 to 256 bytes.";
  const std::string_view tool = tool_of(part);
  if (tool.empty() || tool.size() > kMaxIdBytes)
    return "A tool part has no name of 1 to 256 bytes.";
  if (parts::progress(part) == 4 && !is_settled(part)) return "A tool part has an unknown state.";
  return {};
}

// ---- what is not stored -------------------------------------------------------------------------

constexpr std::array<std::string_view, 3> kMetadataFields = {
    "providerMetadata", "callProviderMetadata", "resultProviderMetadata"};
constexpr std::size_t kMaxProviderText = 500;  // characters, its mark included
constexpr std::string_view kCutMark = "... (cut)";

void forget_openai_items(Json& part) {
  for (const std::string_view field : kMetadataFields) {
    const Json* const metadata = parts::find(part, field);
    const Json* const openai = metadata == nullptr ? nullptr : parts::find(*metadata, "openai");
    if (openai == nullptr || !openai->is_object()) continue;
    Json& kept = part[field];
    const std::size_t erased =
        kept["openai"].erase("itemId") + kept["openai"].erase("reasoningEncryptedContent");
    if (erased > 0 && kept["openai"].empty()) kept.erase("openai");
    if (kept.empty()) part.erase(std::string(field));
  }
}

bool begins_character(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0U) != 0x80U;
}

void cut_text(std::string& text) {
  if (text.size() <= kMaxProviderText) return;
  std::size_t characters = 0;
  std::size_t end = 0;  // of the text that stays
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (!begins_character(text[i])) continue;
    if (characters == kMaxProviderText - kCutMark.size()) end = i;
    if (++characters <= kMaxProviderText) continue;
    text.resize(end);
    text += kCutMark;
    return;
  }
}

void cut_texts(Json& value) {
  if (value.is_string()) {
    cut_text(value.get_ref<std::string&>());
  } else if (value.is_array()) {
    for (Json& each : value) cut_texts(each);
  } else if (value.is_object()) {
    for (auto& [key, each] : value.get_ref<Json::object_t&>())
      if (!key.starts_with("encrypted")) cut_texts(each);
  }
}

void cut_provider_tool(Json& part) {
  const std::string_view tool = tool_of(part);
  if (!parts::is_true(part, "providerExecuted") || tool == "web_search" || tool == "web_fetch")
    return;
  for (const char* const field : {"input", "output"})
    if (part.contains(field)) cut_texts(part[field]);
}

bool is_empty_reasoning(const Json& part) {
  return parts::text(part, "type") == "reasoning" && !part.contains("providerMetadata") &&
         parts::text(part, "text").find_first_not_of(" \t\r\n\v\f") == std::string::npos;
}

}  // namespace

std::string message_fault(const Json& message) {
  if (!message.is_object()) return "A message is no object.";
  if (!parts::has_id(message, "id")) return "A message has no id of 1 to 256 bytes.";
  if (!is_one_of(kRoles, parts::text(message, "role"))) return "A message has no known role.";
  const Json* const all = parts::find(message, "parts");
  if (all == nullptr || !all->is_array()) return "A message has no parts.";
  if (all->size() > kMaxParts) return "A message has more than 10000 parts.";
  if (parts::is_deeper(message, kMaxDepth)) return "A message is nested deeper than 64 levels.";
  for (const Json& part : *all)
    if (const std::string_view fault = part_fault(part); !fault.empty()) return std::string(fault);
  return {};
}

bool is_tool_part(const Json& part) {
  const std::string& type = parts::text(part, "type");
  return type == "dynamic-tool" || type.starts_with("tool-");
}

std::string_view tool_of(const Json& part) {
  const std::string& type = parts::text(part, "type");
  if (type == "dynamic-tool") return parts::text(part, "toolName");
  return std::string_view(type).substr(std::string_view("tool-").size());
}

bool is_settled(const Json& part) {
  return is_one_of(kSettledStates, parts::text(part, "state"));
}

void sanitize(Json& message) {
  Json::array_t& all = parts::of(message).get_ref<Json::array_t&>();
  for (Json& part : all) {
    if (!part.is_object()) continue;
    forget_openai_items(part);
    if (!is_tool_part(part)) continue;
    cut_provider_tool(part);
    part.erase("inputText");
  }
  std::erase_if(all, is_empty_reasoning);
}

}  // namespace hearth::chat
