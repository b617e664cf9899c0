#pragma once
// What a client makes of chunks.

#include <hearth/chat/chunk.hpp>

#include <set>
#include <stdexcept>
#include <string>
#include <vector>

namespace hearth::chat {

using Chunks = std::vector<Json>;

// What a client shows: one that is as strict as the AI SDK's.
class Shown {
 public:
  // Throws for a chunk that would end the stream with an error.
  void take(const Json& chunk) {
    const std::string type = chunk.at("type");
    const std::string kind = type.substr(0, type.find('-'));
    if (type == "text-start" || type == "reasoning-start") {
      require(open_.insert(kind + id(chunk)).second, chunk);
      require(open_.size() <= 2, chunk);  // reasoning may stand beside text that goes on
    } else if (type == "text-delta" || type == "reasoning-delta") {
      require(open_.contains(kind + id(chunk)) && !chunk.at("delta").empty(), chunk);
    } else if (type == "text-end" || type == "reasoning-end") {
      require(open_.erase(kind + id(chunk)) == 1, chunk);
    } else if (type == "tool-input-start") {
      require(calls_.insert(chunk.at("toolCallId")).second, chunk);
    } else if (type.starts_with("tool-")) {
      require(calls_.contains(chunk.at("toolCallId")), chunk);
    } else if (type == "finish-step") {
      require(open_.empty(), chunk);
    }
    require(apply_chunk(message_, chunk).use != Use::kBad, chunk);
  }
  void take(const Chunks& chunks) {
    for (const Json& chunk : chunks) take(chunk);
  }

  [[nodiscard]] const Json& message() const { return message_; }
  // The texts of all parts of text, each in brackets.
  [[nodiscard]] std::string text() const {
    std::string text;
    for (const Json& part : message_["parts"])
      if (part["type"] == "text") text += "[" + part["text"].get<std::string>() + "]";
    return text;
  }
  // The part that a continuation goes on in.
  [[nodiscard]] std::string open_text() const {
    for (const std::string& open : open_)
      if (open.starts_with("text")) return open.substr(4);
    return {};
  }

 private:
  static std::string id(const Json& chunk) { return chunk.at("id"); }
  static void require(bool holds, const Json& chunk) {
    if (!holds) throw std::logic_error("a client cannot read " + to_text(chunk));
  }

  Json message_ = {{"id", "m"}, {"role", "assistant"}, {"parts", Json::array()}};
  std::set<std::string> open_;
  std::set<Json> calls_;
};

}  // namespace hearth::chat
