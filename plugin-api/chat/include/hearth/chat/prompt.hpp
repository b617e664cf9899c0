#pragma once
// What a model is asked, and the reading of UIMessages (AI SDK) for a provider's request.

#include <hearth/json.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::chat {

struct ToolSpec {
  std::string name;
  std::string description = {};
  Json schema = {{"type", "object"}};  // JSON schema of the input
};

struct ModelOptions {
  std::string model;
  std::optional<std::int64_t> max_output_tokens = {};  // with thoughts
  std::string reasoning = {};  // "low", "medium", "high"; empty: the model's default
  // A cut answer can be fetched on, if the provider can do this. It then stores the answer.
  bool is_resumable = false;
  // More members of the request's body. They win; null removes a member.
  Json extra = Json::object();
};

// An answer that was cut, and ended for all that was not text, goes on if it is the last message.
struct Prompt {
  std::string system = {};
  Json messages = Json::array();  // UIMessages
  std::vector<ToolSpec> tools = {};
  ModelOptions options = {};
};

// ---- for providers: UIMessages as models take them. Nothing here throws.

enum class Role : std::uint8_t { kSystem, kUser, kAssistant };

// One message, or one step of an assistant's message: what the model has said before it got the
// results of its calls.
struct ModelMessage {
  Role role;
  std::vector<const Json*>
      parts;  // text, reasoning, file and calls; of text only what is not empty
};

// Without messages that hold nothing for a model. Two neighbours may have the same role.
//
// Lifetime  Points into `messages`.
[[nodiscard]] std::vector<ModelMessage> model_messages(const Json& messages);

// A part of a message that is a call, with its result as text.
struct SettledCall {
  std::string id;
  std::string tool;
  Json input;  // an object, always
  std::string
      result;  // at most kMaxResult bytes, then a note. A call without result gets an error.
  bool is_error = false;
  bool is_executed_by_provider = false;
  const Json* output = nullptr;  // null if it has none
};
// Of the messages of a prompt, where the model's window is not known.
inline constexpr std::size_t kMaxHistoryBytes = std::size_t{16} << 20;
inline constexpr std::size_t kMaxResult = std::size_t{64} << 10;

[[nodiscard]] bool is_text(const Json& part);
[[nodiscard]] bool is_reasoning(const Json& part);
[[nodiscard]] bool is_file(const Json& part);
// Nothing if the part is no call.
[[nodiscard]] std::optional<SettledCall> find_call(const Json& part);
[[nodiscard]] std::string_view part_text(const Json& part);
// providerMetadata of this provider.
[[nodiscard]] const Json& part_metadata(const Json& part, std::string_view provider);

struct FilePart {
  std::string media_type;
  std::string name;    // empty: it has none
  std::string url;     // http or https; empty if it has `base64`
  std::string base64;  // its content

  [[nodiscard]] bool is_image() const { return media_type.starts_with("image/"); }
  [[nodiscard]] std::string data_url() const;
  // Its content, if it is text (text/*, JSON or XML) and has come with the message.
  [[nodiscard]] std::optional<std::string> text() const;
  // Says to the model that it does not get this file.
  [[nodiscard]] std::string note() const;
};
[[nodiscard]] FilePart file_part(const Json& part);

// How much of JSON a model reads, for estimates: the bytes of its text, but a picture in it counts
// kPictureBytes, since models take at most some 1,600 tokens for one, and a PDF an eighth of its
// base64. Of messages and of the body of a request. A form that no provider here has is text.
inline constexpr std::size_t kPictureBytes = 4'800;
[[nodiscard]] std::size_t model_bytes(const Json& value);

// A user's message that is not stored, for a request that would end in an answer.
inline constexpr std::string_view kGoOn =
    "The answer above was cut off. Go on exactly where it stops. Repeat nothing of it, and do not "
    "mention the interruption.";

// Puts ModelOptions::extra into the body.
void add_extra(Json& body, const ModelOptions& options);

}  // namespace hearth::chat
