#include "parts.hpp"

#include <hearth/chat/message.hpp>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace hearth::chat {

namespace {

// The tool parts of a message, by call.
using CallMap = std::unordered_map<std::string_view, const Json*>;

CallMap calls_of(const Json& message) {
  CallMap calls;
  for (const Json& part : parts::of(message))
    if (is_tool_part(part)) calls[parts::text(part, "toolCallId")] = &part;
  return calls;
}

bool is_assistant(const Json& message) {
  return parts::text(message, "role") == "assistant";
}

// Equal for two parts that are one call: providers use an id again for another call.
std::string call_key(std::string_view call, const Json& part) {
  const Json* const input = parts::find(part, "input");
  return to_text({call, parts::text(part, "type"), tool_of(part),
                  parts::as_input(input == nullptr ? Json() : *input)});
}

// A client and the server may disagree about whether a text is still open.
std::string content_key(Json message) {
  sanitize(message);
  for (Json& part : parts::of(message)) {
    const std::string& type = parts::text(part, "type");
    if (type != "text" && type != "reasoning") continue;
    part.erase("id");
    part.erase("state");
  }
  return to_text(parts::of(message));
}

bool have_equal_calls(const CallMap& calls, const Json& other) {
  for (const auto& [call, part] : calls_of(other)) {
    const auto twin = calls.find(call);
    if (twin != calls.end() && call_key(call, *part) != call_key(call, *twin->second)) return false;
  }
  return true;
}

// What is stored, and which of it was found among the incoming messages.
class StoredMessages {
 public:
  explicit StoredMessages(const Json& stored) : stored_(stored), is_found_(stored.size()) {
    for (std::size_t i = 0; i < stored.size(); ++i) by_id_.emplace(parts::text(stored[i], "id"), i);
  }

  const Json* find_id(const std::string& id) {
    const auto found = by_id_.find(id);
    if (found == by_id_.end()) return nullptr;
    is_found_[found->second] = true;
    return &stored_[found->second];
  }

  // For an assistant message that no stored one has the id of.
  const Json* find_equal(const Json& incoming) {
    read_keys();
    const CallMap calls = calls_of(incoming);
    std::size_t first = stored_.size();
    for (const parts::Key& key : parts::keys_of(incoming))
      if (const auto found = by_key_.find(key.text); found != by_key_.end())
        first = std::min(first, first_in(found->second, calls));
    if (first == stored_.size()) return nullptr;
    is_found_[first] = true;
    return &stored_[first];
  }

  // Whether the call is settled in a message that was found. All must have been looked for.
  [[nodiscard]] bool is_call_settled(std::string_view call) {
    if (!has_settled_) {
      has_settled_ = true;
      for (std::size_t i = 0; i < stored_.size(); ++i) {
        if (!is_found_[i]) continue;
        for (const auto& [each, part] : calls_of(stored_[i]))
          if (is_settled(*part)) settled_.insert(each);
      }
    }
    return settled_.contains(call);
  }

 private:
  struct Candidates {
    std::vector<std::size_t> rows;
    std::size_t begin = 0;  // those before are found
  };
  // Only a client that is out to cost time has more messages with one call and other calls unequal.
  static constexpr std::size_t kMaxTries = 16;

  std::size_t first_in(Candidates& candidates, const CallMap& calls) {
    const auto& rows = candidates.rows;
    while (candidates.begin < rows.size() && is_found_[rows[candidates.begin]]) ++candidates.begin;
    const std::size_t end = std::min(rows.size(), candidates.begin + kMaxTries);
    for (std::size_t i = candidates.begin; i < end; ++i)
      if (!is_found_[rows[i]] && have_equal_calls(calls, stored_[rows[i]])) return rows[i];
    return stored_.size();
  }

  // Only when a client names a message as the server does not, for it costs the text of all.
  void read_keys() {
    if (has_keys_) return;
    has_keys_ = true;
    for (std::size_t i = 0; i < stored_.size(); ++i) {
      if (is_found_[i] || !is_assistant(stored_[i])) continue;
      for (parts::Key& key : parts::keys_of(stored_[i]))
        by_key_[std::move(key.text)].rows.push_back(i);
    }
  }

  const Json& stored_;
  std::vector<bool> is_found_;
  std::unordered_map<std::string, std::size_t> by_id_;
  std::unordered_map<std::string, Candidates> by_key_;
  std::unordered_set<std::string_view> settled_;
  bool has_keys_ = false;
  bool has_settled_ = false;
};

// Takes what is further in `other`. Returns whether there was any.
bool keep_results(Json& message, const Json& other) {
  const CallMap calls = calls_of(other);
  bool is_behind = false;
  for (Json& part : parts::of(message)) {
    if (!is_tool_part(part)) continue;
    const auto twin = calls.find(parts::text(part, "toolCallId"));
    if (twin == calls.end() || parts::progress(*twin->second) <= parts::progress(part)) continue;
    part = *twin->second;
    is_behind = true;
  }
  return is_behind;
}

struct Texts {
  std::vector<std::string_view> texts;
  bool is_open = false;
};

Texts texts_of(const Json& message) {
  Texts found;
  for (const Json& part : parts::of(message)) {
    const std::string& type = parts::text(part, "type");
    if (type != "text" && type != "reasoning") continue;
    found.texts.emplace_back(parts::text(part, "text"));
    if (parts::text(part, "state") == "streaming") found.is_open = true;
  }
  return found;
}

// Each text of the copy is the beginning of the stored one.
bool is_beginning(const Texts& copy, const Texts& stored) {
  return copy.texts.size() <= stored.texts.size() &&
         std::ranges::equal(copy.texts, std::span(stored.texts).first(copy.texts.size()),
                            [](std::string_view begun, std::string_view whole) {
                              return whole.starts_with(begun);
                            });
}

// The message, with the results of both. If a client has copied it in the middle of its stream,
// that is the stored one: the client sent it before it saw the end.
Json merged(Json incoming, const Json& stored) {
  const bool has_less = keep_results(incoming, stored);
  const Texts texts = texts_of(incoming);
  const Texts stored_texts = texts_of(stored);
  if ((!has_less && !texts.is_open) || stored_texts.is_open || !is_beginning(texts, stored_texts))
    return incoming;
  Json whole = stored;
  keep_results(whole, incoming);
  return whole;
}

// Nothing but calls that wait, while the same calls have ended in a message that was found.
bool is_left_over(const Json& message, StoredMessages& stored) {
  bool has_call = false;
  for (const Json& part : parts::of(message)) {
    if (parts::text(part, "type") == "step-start") continue;
    if (!is_tool_part(part) || is_settled(part)) return false;
    if (!stored.is_call_settled(parts::text(part, "toolCallId"))) return false;
    has_call = true;
  }
  return has_call;
}

}  // namespace

std::vector<parts::Key> parts::keys_of(const Json& message) {
  std::vector<Key> keys;
  for (const auto& [call, part] : calls_of(message))
    keys.push_back({std::string(call), call_key(call, *part)});
  if (keys.empty()) keys.push_back({{}, content_key(message)});
  return keys;
}

Reconciled reconcile(Json incoming, const Json& stored) {
  StoredMessages rows(stored);
  const std::size_t count = incoming.size();
  // Ids first, so that no message takes a row that another one names.
  std::unordered_set<std::string> ids;
  std::vector<bool> is_double(count);
  std::vector<const Json*> found(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::string& id = parts::text(incoming[i], "id");
    is_double[i] = !ids.insert(id).second;
    if (!is_double[i]) found[i] = rows.find_id(id);
  }
  for (std::size_t i = 0; i < count; ++i)
    if (found[i] == nullptr && !is_double[i] && is_assistant(incoming[i]))
      found[i] = rows.find_equal(incoming[i]);

  Reconciled result;
  for (std::size_t i = 0; i < count; ++i) {
    Json& message = incoming[i];
    if (is_double[i]) continue;
    if (found[i] != nullptr) {
      message["id"] = (*found[i])["id"];
      message = merged(std::move(message), *found[i]);
    } else if (i + 1 < count && is_assistant(message) && is_left_over(message, rows)) {
      continue;
    } else {
      result.are_all_stored = false;
    }
    result.messages.push_back(std::move(message));
  }
  return result;
}

}  // namespace hearth::chat
