#include "parts.hpp"

#include <hearth/chat/chunk.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <utility>

namespace hearth::chat {

namespace {

using ApplyChunk = Applied (*)(Json& message, const Json& chunk);

Applied pass_chunk(Json&, const Json&) {
  return {Use::kPassed};
}

Applied pushed(Json& message, Json part) {
  return {parts::push(message, std::move(part)) ? Use::kStored : Use::kBad};
}

// ---- text and reasoning -------------------------------------------------------------------------

// The open part that a chunk names. A provider that leaves out the id means the last one.
Json* open_part(Json& message, std::string_view type, std::string_view id) {
  Json& all = parts::of(message);
  Json* last = nullptr;
  for (std::size_t i = all.size(); i-- > 0;) {
    Json& part = all[i];
    if (parts::text(part, "type") != type || parts::text(part, "state") != "streaming") continue;
    if (parts::text(part, "id") == id) return &part;
    if (last == nullptr) last = &part;
  }
  return last;
}

Applied start_part(Json& message, const Json& chunk, const char* type) {
  if (!parts::has_id(chunk, "id")) return {Use::kBad};
  Json part{{"type", type}, {"id", chunk["id"]}, {"text", ""}, {"state", "streaming"}};
  parts::copy(part, chunk, {"providerMetadata"});
  return pushed(message, std::move(part));
}

Applied add_to_part(Json& message, const Json& chunk, const char* type) {
  const Json* const delta = parts::find(chunk, "delta");
  if (delta == nullptr || !delta->is_string()) return {Use::kBad};
  Json* part = open_part(message, type, parts::text(chunk, "id"));
  if (part == nullptr) {
    const Applied started = start_part(message, chunk, type);
    if (started.use != Use::kStored) return started;
    part = &parts::of(message).back();
  }
  (*part)["text"].get_ref<std::string&>() += delta->get_ref<const std::string&>();
  parts::merge(*part, "providerMetadata", parts::find(chunk, "providerMetadata"));
  return {Use::kStored};
}

Applied end_part(Json& message, const Json& chunk, const char* type) {
  Json* const part = open_part(message, type, parts::text(chunk, "id"));
  if (part == nullptr) return {Use::kBad};
  (*part)["state"] = "done";
  if (parts::text(*part, "type") == "text") part->erase("id");
  parts::copy(*part, chunk, {"citations"});
  parts::merge(*part, "providerMetadata", parts::find(chunk, "providerMetadata"));
  return {Use::kStored};
}

Applied start_text(Json& message, const Json& chunk) {
  return start_part(message, chunk, "text");
}
Applied add_text(Json& message, const Json& chunk) {
  return add_to_part(message, chunk, "text");
}
Applied end_text(Json& message, const Json& chunk) {
  return end_part(message, chunk, "text");
}
Applied start_reasoning(Json& message, const Json& chunk) {
  return start_part(message, chunk, "reasoning");
}
Applied add_reasoning(Json& message, const Json& chunk) {
  return add_to_part(message, chunk, "reasoning");
}
Applied end_reasoning(Json& message, const Json& chunk) {
  return end_part(message, chunk, "reasoning");
}

// ---- steps and the message as a whole -----------------------------------------------------------

Applied merge_metadata(Json& message, const Json& chunk) {
  const Json* const metadata = parts::find(chunk, "messageMetadata");
  parts::merge(message, "metadata", metadata);
  return {metadata == nullptr ? Use::kPassed : Use::kStored};
}

Applied start_message(Json& message, const Json& chunk) {
  if (parts::text(message, "id").empty() && parts::has_id(chunk, "messageId"))
    message["id"] = chunk["messageId"];
  merge_metadata(message, chunk);
  return {Use::kStored};
}

Applied start_step(Json& message, const Json&) {
  return pushed(message, {{"type", "step-start"}});
}

Applied reset_step(Json& message, const Json&) {
  Json::array_t& all = parts::of(message).get_ref<Json::array_t&>();
  const auto last = std::find_if(all.rbegin(), all.rend(), [](const Json& part) {
    return parts::text(part, "type") == "step-start";
  });
  all.erase(last.base(), all.end());
  return {Use::kStored};
}

Applied check_error(Json&, const Json& chunk) {
  const Json* const error = parts::find(chunk, "errorText");
  return {error != nullptr && error->is_string() ? Use::kPassed : Use::kBad};
}

// ---- parts that come whole ----------------------------------------------------------------------

Applied add_whole(Json& message, const Json& chunk, std::initializer_list<std::string_view> needed,
                  std::initializer_list<std::string_view> others) {
  for (const std::string_view key : needed) {
    const Json* const field = parts::find(chunk, key);
    if (field == nullptr || !field->is_string()) return {Use::kBad};
  }
  Json part = Json::object();
  parts::copy(part, chunk, needed);
  parts::copy(part, chunk, others);
  return pushed(message, std::move(part));
}

Applied add_url(Json& message, const Json& chunk) {
  return add_whole(message, chunk, {"type", "sourceId", "url"}, {"title", "providerMetadata"});
}
Applied add_document(Json& message, const Json& chunk) {
  return add_whole(message, chunk, {"type", "sourceId", "mediaType", "title"},
                   {"filename", "providerMetadata"});
}
Applied add_file(Json& message, const Json& chunk) {
  return add_whole(message, chunk, {"type", "url", "mediaType"}, {"providerMetadata"});
}
Applied add_custom(Json& message, const Json& chunk) {
  return add_whole(message, chunk, {"type", "kind"}, {"providerMetadata"});
}

Applied add_data(Json& message, const Json& chunk) {
  const Json* const data = parts::find(chunk, "data");
  if (data == nullptr) return {Use::kBad};
  if (parts::is_true(chunk, "transient")) return {Use::kPassed};
  const Json* const id = parts::find(chunk, "id");
  if (id != nullptr && id->is_string()) {
    for (Json& part : parts::of(message)) {
      if (parts::text(part, "type") != parts::text(chunk, "type")) continue;
      const Json* const other = parts::find(part, "id");
      if (other == nullptr || *other != *id) continue;
      part["data"] = *data;
      return {Use::kStored};
    }
  }
  Json part{{"type", chunk["type"]}, {"data", *data}};
  parts::copy(part, chunk, {"id"});
  return pushed(message, std::move(part));
}

// ---- by type ------------------------------------------------------------------------------------

struct ChunkKind {
  std::string_view type;
  ApplyChunk apply;
};

constexpr std::array kChunkKinds = {
    ChunkKind{"start", start_message},
    ChunkKind{"start-step", start_step},
    ChunkKind{"step-start", start_step},  // an older name
    ChunkKind{"text-start", start_text},
    ChunkKind{"text-delta", add_text},
    ChunkKind{"text-end", end_text},
    ChunkKind{"reasoning-start", start_reasoning},
    ChunkKind{"reasoning-delta", add_reasoning},
    ChunkKind{"reasoning-end", end_reasoning},
    ChunkKind{"source-url", add_url},
    ChunkKind{"source-document", add_document},
    ChunkKind{"file", add_file},
    ChunkKind{"reasoning-file", add_file},
    ChunkKind{"custom", add_custom},
    ChunkKind{"steering-message", pass_chunk},
    ChunkKind{"finish-step", pass_chunk},
    ChunkKind{"reset-step", reset_step},
    ChunkKind{"message-metadata", merge_metadata},
    ChunkKind{"finish", merge_metadata},
    ChunkKind{"abort", pass_chunk},
    ChunkKind{"error", check_error},
};

// Where a delta has its part and its text. Empty: the chunk is none.
struct DeltaForm {
  std::string_view type;
  std::string_view part;
  std::string_view text;
};
constexpr std::array kDeltas = {
    DeltaForm{"text-delta", "id", "delta"},
    DeltaForm{"reasoning-delta", "id", "delta"},
    DeltaForm{"tool-input-delta", "toolCallId", "inputTextDelta"},
};

bool is_plain_delta(const Json& chunk, const DeltaForm& form) {
  return chunk.size() == 3 && parts::text(chunk, "type") == form.type &&
         parts::has_id(chunk, form.part) && chunk.contains(form.text) &&
         chunk[form.text].is_string();
}

}  // namespace

Applied apply_chunk(Json& message, const Json& chunk) {
  const std::string& type = parts::text(chunk, "type");
  if (!message.is_object() || parts::is_deeper(chunk, kMaxValueDepth)) return {Use::kBad};
  if (type.starts_with("tool-")) return parts::apply_tool_chunk(message, chunk);
  if (type.starts_with("data-")) return add_data(message, chunk);
  const auto kind = std::ranges::find(kChunkKinds, type, &ChunkKind::type);
  return kind == kChunkKinds.end() ? Applied{Use::kBad} : kind->apply(message, chunk);
}

void prepare_chunk(Json& chunk, std::string_view message_id) {
  const std::string& type = parts::text(chunk, "type");
  if (type == "start") {
    if (message_id.empty())
      chunk.erase("messageId");
    else
      chunk["messageId"] = message_id;
  } else if (type == "finish" && chunk.contains("finishReason")) {
    const Json reason{{"finishReason", chunk["finishReason"]}};
    parts::merge(chunk, "messageMetadata", &reason);
    chunk.erase("finishReason");
  }
}

std::vector<Json> closing_chunks(const Json& message, Closing closing) {
  const bool goes_on = closing == Closing::kContinuation;
  std::vector<Json> chunks;
  for (const Json& part : parts::of(message)) {
    const std::string& type = parts::text(part, "type");
    const std::string& state = parts::text(part, "state");
    if (is_tool_part(part) && state == "input-streaming" && goes_on)
      chunks.push_back({{"type", "tool-output-error"},
                        {"toolCallId", part["toolCallId"]},
                        {"errorText", "The answer was cut off before the call was complete."}});
    if (state != "streaming" || !parts::has_id(part, "id")) continue;
    if (type == "reasoning" || (type == "text" && !goes_on))
      chunks.push_back({{"type", type + "-end"}, {"id", part["id"]}});
  }
  return chunks;
}

void append_chunk(std::vector<Json>& chunks, Json chunk) {
  if (!chunks.empty()) {
    Json& last = chunks.back();
    for (const DeltaForm& form : kDeltas) {
      if (!is_plain_delta(last, form) || !is_plain_delta(chunk, form)) continue;
      if (last[form.part] != chunk[form.part]) break;
      last[form.text].get_ref<std::string&>() += chunk[form.text].get_ref<const std::string&>();
      return;
    }
  }
  chunks.push_back(std::move(chunk));
}

}  // namespace hearth::chat
