#pragma once
// Recorded answers of providers.

#include "shown.hpp"

#include <hearth/chat/provider.hpp>

#include <fstream>
#include <iterator>
#include <memory>
#include <string>

namespace hearth::chat {

inline Json read_table(const std::string& name) {
  std::ifstream file(std::string(CHAT_TABLES) + "/" + name + ".json");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  return parse_json(text);
}

inline std::unique_ptr<Provider> make_provider(std::string_view name) {
  if (name == "openai_responses") return std::make_unique<OpenAiResponses>();
  if (name == "chat_completions") return std::make_unique<ChatCompletions>();
  return std::make_unique<AnthropicMessages>();
}
inline constexpr const char* kProviders[] = {"openai_responses", "chat_completions",
                                             "anthropic_messages"};

// A line of a recording: an event's data as JSON or as text, or a body that is not a stream.
inline void read_line(const Provider& provider, const Json& line, ModelAnswer& answer) {
  if (line.contains("whole")) {
    provider.read_whole(line["whole"], answer);
  } else {
    const std::string data = line.is_string() ? line.get<std::string>() : to_text(line);
    provider.read({.data = data}, answer);
  }
}

}  // namespace hearth::chat
