#include "lenient.hpp"

#include <hearth/chat/prompt.hpp>

#include <algorithm>
#include <utility>

namespace hearth::chat {
namespace {

constexpr std::string_view kBase64 =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

std::string to_base64(std::string_view bytes) {
  std::string out;
  std::uint32_t bits = 0;
  int count = 0;
  for (const char byte : bytes) {
    bits = bits << 8U | static_cast<unsigned char>(byte);
    for (count += 8; count >= 6; count -= 6) out += kBase64[bits >> (count - 6) & 63U];
  }
  if (count > 0) out += kBase64[bits << (6 - count) & 63U];
  return out.append((4 - out.size() % 4) % 4, '=');
}

std::optional<std::string> from_base64(std::string_view text) {
  while (text.ends_with('=')) text.remove_suffix(1);
  std::string out;
  std::uint32_t bits = 0;
  int count = 0;
  for (const char digit : text) {
    const auto value = kBase64.find(digit);
    if (value == std::string_view::npos) return std::nullopt;
    bits = bits << 6U | static_cast<std::uint32_t>(value);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    out += static_cast<char>(bits >> count & 0xFFU);
  }
  return out;
}

int hex_digit(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
  if (digit >= 'A' && digit <= 'F') return digit - 'A' + 10;
  return -1;
}

std::string from_percent(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool is_escape = text[i] == '%' && i + 2 < text.size() && hex_digit(text[i + 1]) >= 0 &&
                           hex_digit(text[i + 2]) >= 0;
    out += is_escape ? static_cast<char>(hex_digit(text[i + 1]) * 16 + hex_digit(text[i + 2]))
                     : text[i];
    if (is_escape) i += 2;
  }
  return out;
}

// data:[<type>][;base64],<data> (RFC 2397)
void read_data_url(std::string_view url, FilePart& file) {
  const auto comma = url.find(',');
  std::string_view type = url.substr(5, comma == std::string_view::npos ? comma : comma - 5);
  const std::string_view data =
      comma == std::string_view::npos ? std::string_view() : url.substr(comma + 1);
  const bool is_base64 = type.ends_with(";base64");
  type = type.substr(0, type.find(';'));
  if (file.media_type.empty()) file.media_type = type.empty() ? "text/plain" : type;
  file.base64 = is_base64 ? std::string(data) : to_base64(from_percent(data));
}

bool is_for_model(const Json& part) {
  if (is_text(part)) return !part_text(part).empty();
  return is_reasoning(part) || is_file(part) || find_call(part).has_value();
}

Json read_object(const Json& input) {
  if (input.is_object()) return input;
  if (auto parsed = parse_any(as_text(input)); parsed && parsed->is_object())
    return *std::move(parsed);
  return Json::object();
}

std::string shortened(std::string text) {
  if (text.size() <= kMaxResult) return text;
  const std::size_t size = text.size();
  text.resize(first_bytes(text, kMaxResult).size());
  return text += "\n[cut here: the whole result has " + std::to_string(size) + " bytes]";
}

void settle(const Json& part, SettledCall& call) {
  const std::string_view state = text_member(part, "state");
  const Json& approval = member(part, "approval");
  const bool is_denied = state == "output-denied" ||
                         (state == "approval-responded" && !parts::is_true(approval, "approved"));
  if (state == "output-available") {
    call.output = &member(part, "output");
    call.result =
        call.output->is_string() ? std::string(as_text(*call.output)) : to_text(*call.output);
  } else if (state == "output-error") {
    call.result = text_member(part, "errorText");
    if (call.result.empty()) call.result = "The call failed.";
  } else if (is_denied) {
    call.result = "The user denied this call.";
    const std::string_view reason = text_member(approval, "reason");
    if (!reason.empty()) call.result += joined(" Reason: ", reason);
  } else {
    call.result = "The call was interrupted before a result was recorded.";
  }
  call.is_error = call.output == nullptr;
  call.result = shortened(std::move(call.result));
}

}  // namespace

bool is_text(const Json& part) {
  return text_member(part, "type") == "text";
}
bool is_reasoning(const Json& part) {
  return text_member(part, "type") == "reasoning";
}
bool is_file(const Json& part) {
  return text_member(part, "type") == "file" && !text_member(part, "url").empty();
}
std::string_view part_text(const Json& part) {
  return text_member(part, "text");
}
const Json& part_metadata(const Json& part, std::string_view provider) {
  return member(member(part, "providerMetadata"), provider);
}

std::optional<SettledCall> find_call(const Json& part) {
  constexpr std::string_view kPrefix = "tool-";
  const std::string_view type = text_member(part, "type");
  const std::string_view id = text_member(part, "toolCallId");
  if (id.empty() || (type != "dynamic-tool" && !type.starts_with(kPrefix))) return std::nullopt;
  SettledCall call;
  call.id = id;
  call.tool =
      type.starts_with(kPrefix) ? type.substr(kPrefix.size()) : text_member(part, "toolName");
  if (call.tool.empty()) return std::nullopt;
  call.input = read_object(member(part, "input"));
  call.is_executed_by_provider = parts::is_true(part, "providerExecuted");
  settle(part, call);
  return call;
}

std::vector<ModelMessage> model_messages(const Json& messages) {
  std::vector<ModelMessage> out;
  if (!messages.is_array()) return out;
  for (const Json& message : messages) {
    const std::string_view word = text_member(message, "role");
    const Role role = word == "assistant" ? Role::kAssistant
                      : word == "system"  ? Role::kSystem
                                          : Role::kUser;
    const Json& parts = member(message, "parts");
    ModelMessage step{role, {}};
    const auto end_step = [&] {
      if (!step.parts.empty()) out.push_back(std::exchange(step, {role, {}}));
    };
    for (std::size_t i = 0; parts.is_array() && i < parts.size(); ++i) {
      const Json& part = parts[i];
      if (role == Role::kAssistant && text_member(part, "type") == "step-start") end_step();
      if (is_for_model(part)) step.parts.push_back(&part);
    }
    end_step();
  }
  return out;
}

std::string FilePart::data_url() const {
  return base64.empty() ? url : "data:" + media_type + ";base64," + base64;
}

std::optional<std::string> FilePart::text() const {
  const bool is_readable = media_type.starts_with("text/") || media_type == "application/json" ||
                           media_type == "application/xml";
  if (!is_readable || base64.empty()) return std::nullopt;
  auto text = from_base64(base64);
  if (text && as_utf8(*text) != *text) return std::nullopt;
  return text;
}

std::string FilePart::note() const {
  std::string text = "[A file that cannot be shown here: " + media_type;
  if (!name.empty()) text += ", " + name;
  if (!url.empty()) text += ", " + url;
  return text + "]";
}

namespace {

// What is not read of this base64.
std::size_t unread_bytes(std::string_view media_type, std::size_t size) {
  if (media_type.starts_with("image/")) return size - std::min(size, kPictureBytes);
  if (media_type.starts_with("application/pdf")) return size - size / 8;
  return 0;
}

std::size_t unread_bytes(const Json& value) {
  if (value.is_string()) {
    std::string_view text = value.get_ref<const std::string&>();
    constexpr std::string_view kScheme = "data:";
    if (!text.starts_with(kScheme)) return 0;
    return unread_bytes(text.substr(kScheme.size()), text.size());
  }
  std::size_t unread = 0;
  if (value.is_structured())
    for (const Json& member : value) unread += unread_bytes(member);
  if (value.is_object() && value.contains("media_type") && value.contains("data") &&
      value["media_type"].is_string() && value["data"].is_string())
    unread += unread_bytes(value["media_type"].get_ref<const std::string&>(),
                           value["data"].get_ref<const std::string&>().size());
  return unread;
}

}  // namespace

std::size_t model_bytes(const Json& value) {
  return to_text(value).size() - unread_bytes(value);
}

FilePart file_part(const Json& part) {
  FilePart file;
  file.media_type = text_member(part, "mediaType");
  file.name = text_member(part, "filename");
  const std::string_view url = text_member(part, "url");
  if (url.starts_with("data:")) {
    read_data_url(url, file);
  } else {
    file.url = url;
  }
  return file;
}

void add_extra(Json& body, const ModelOptions& options) {
  if (options.extra.is_object()) body.merge_patch(options.extra);
}

}  // namespace hearth::chat
