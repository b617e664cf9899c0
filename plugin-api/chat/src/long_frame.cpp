#include "parts.hpp"

#include <hearth/chat/long_frame.hpp>
#include <hearth/chat/wire.hpp>

#include <algorithm>
#include <array>
#include <utility>

namespace hearth::chat {

namespace {

// Finds the way in JSON text, and checks no more of it than that needs: what is found is compared
// with what is stored, or parsed.
constexpr std::size_t kNowhere = std::string_view::npos;

bool is_space(char letter) {
  return letter == ' ' || letter == '\n' || letter == '\t' || letter == '\r';
}

std::size_t skip_space(std::string_view text, std::size_t at) {
  while (at < text.size() && is_space(text[at])) ++at;
  return at;
}

bool has_at(std::string_view text, std::size_t at, char letter) {
  return at < text.size() && text[at] == letter;
}

// Behind the string that begins here.
std::size_t end_of_string(std::string_view text, std::size_t begin) {
  for (std::size_t quote = text.find('"', begin + 1); quote != kNowhere;
       quote = text.find('"', quote + 1)) {
    std::size_t slashes = 0;
    while (text[quote - 1 - slashes] == '\\') ++slashes;
    if (slashes % 2 == 0) return quote + 1;
  }
  return kNowhere;
}

// Behind the value that begins here.
std::size_t end_of_value(std::string_view text, std::size_t at) {
  std::size_t depth = 0;
  while (at < text.size()) {
    const char letter = text[at];
    const bool closes = letter == '}' || letter == ']';
    if (depth == 0 && (closes || letter == ',' || is_space(letter))) return at;  // of a number
    at = letter == '"' ? end_of_string(text, at) : at + 1;
    if (letter == '{' || letter == '[') ++depth;
    if (closes) --depth;
    if (depth == 0 && (closes || letter == '"')) return at;
  }
  return kNowhere;
}

struct Range {
  std::size_t begin = kNowhere;
  std::size_t end = kNowhere;

  [[nodiscard]] bool is_found() const { return begin != kNowhere; }
};

// Calls `take(name, value)` for each member of the object that begins here. Gives its end.
template <class Take>
std::size_t each_member(std::string_view text, std::size_t at, const Take& take) {
  if (!has_at(text, at, '{')) return kNowhere;
  do {
    const std::size_t name = skip_space(text, at + 1);
    if (!has_at(text, name, '"')) return kNowhere;
    const std::size_t name_end = end_of_string(text, name);
    if (name_end == kNowhere) return kNowhere;
    at = skip_space(text, name_end);
    if (!has_at(text, at, ':')) return kNowhere;
    const std::size_t begin = skip_space(text, at + 1);
    const std::size_t end = end_of_value(text, begin);
    if (end == kNowhere) return kNowhere;
    take(text.substr(name + 1, name_end - name - 2), Range{begin, end});
    at = skip_space(text, end);
  } while (has_at(text, at, ','));
  return has_at(text, at, '}') ? at + 1 : kNowhere;
}

// The values of the only members of these names.
template <std::size_t kCount>
std::array<Range, kCount> find_members(std::string_view text, std::size_t object,
                                       const std::array<std::string_view, kCount>& names) {
  std::array<Range, kCount> found;
  bool is_clear = true;
  const std::size_t end = each_member(text, object, [&](std::string_view name, const Range& value) {
    if (name.find('\\') != std::string_view::npos) is_clear = false;  // it may be any of them
    const auto wanted = std::ranges::find(names, name);
    if (wanted == names.end()) return;
    Range& range = found.at(static_cast<std::size_t>(wanted - names.begin()));
    is_clear = is_clear && !range.is_found();
    range = value;
  });
  if (end == kNowhere || !is_clear) found = {};
  return found;
}

// The characters of a JSON string without its quotes. Nothing: it has an escape with a number.
std::optional<std::string> unescape(std::string_view written) {
  constexpr std::string_view kLetters = "\"\\/bfnrt";
  constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
  std::string text;
  text.reserve(written.size());
  for (std::size_t at = 0; at < written.size();) {
    const std::size_t escape = std::min(written.find('\\', at), written.size());
    text.append(written, at, escape - at);
    if (escape == written.size()) break;
    if (escape + 1 == written.size()) return std::nullopt;
    const std::size_t letter = kLetters.find(written[escape + 1]);
    if (letter == std::string_view::npos) return std::nullopt;
    text += kMeanings[letter];
    at = escape + 2;
  }
  return text;
}

// The message that begins here.
SentMessage sent_message(std::string_view text, std::size_t begin) {
  SentMessage message;
  message.begin = begin;
  message.end = each_member(text, begin, [&](std::string_view name, const Range& range) {
    const std::string_view value = text.substr(range.begin, range.end - range.begin);
    if (name == "role") message.is_user = value == R"("user")";
    if (name.find('\\') != std::string_view::npos) message.id.clear();  // it may be another id
    if (name != "id") return;
    const bool is_plain =
        value.size() > 2 && value.front() == '"' && value.find('\\') == std::string_view::npos;
    message.id = is_plain ? value.substr(1, value.size() - 2) : std::string_view();
  });
  if (message.end != kNowhere) message.hash = parts::hash(text.substr(begin, message.end - begin));
  return message;
}

}  // namespace

std::optional<LongFrame> LongFrame::split(std::string_view frame) {
  LongFrame split;
  const auto [messages, init] = find_members<2>(frame, skip_space(frame, 0), {"messages", "init"});
  if (messages.is_found() == init.is_found()) return std::nullopt;
  if (messages.is_found()) {
    split.text_ = frame;
    if (!split.take_list(messages.begin, messages.end)) return std::nullopt;
    return split;
  }
  const auto [body] = find_members<1>(frame, init.begin, {"body"});
  if (!body.is_found() || frame[body.begin] != '"') return std::nullopt;
  std::optional<std::string> text =
      unescape(frame.substr(body.begin + 1, body.end - body.begin - 2));
  if (!text) return std::nullopt;
  split.head_ = frame.substr(0, body.begin);
  split.tail_ = frame.substr(body.end);
  split.is_quoted_ = true;
  split.text_ = std::move(*text);
  const auto [list] = find_members<1>(split.text_, skip_space(split.text_, 0), {"messages"});
  if (!list.is_found() || !split.take_list(list.begin, list.end)) return std::nullopt;
  return split;
}

// False: it is no list of objects, or too long.
bool LongFrame::take_list(std::size_t begin, std::size_t end) {
  const std::string_view text = text_;
  if (text[begin] != '[') return false;
  list_begin_ = begin;
  list_end_ = end;
  std::size_t at = begin;
  do {
    messages_.push_back(sent_message(text, skip_space(text, at + 1)));
    if (messages_.back().end == kNowhere || messages_.size() > kMaxMessages) return false;
    at = skip_space(text, messages_.back().end);
  } while (has_at(text, at, ','));
  if (at + 1 != end) return false;
  std::unordered_set<std::string_view> ids;
  for (SentMessage& message : messages_)
    if (!ids.insert(message.id).second) message.id.clear();
  earlier_ = messages_.size() - 1;
  while (earlier_ > 0 && messages_[earlier_].is_user) --earlier_;
  return true;
}

std::string LongFrame::without(const std::unordered_set<std::string>& ids) const {
  std::string text = text_.substr(0, list_begin_);
  char before = '[';
  for (const SentMessage& message : messages_) {
    if (!message.id.empty() && ids.contains(message.id)) continue;
    (text += std::exchange(before, ',')).append(text_, message.begin, message.end - message.begin);
  }
  (text += ']').append(text_, list_end_);
  if (!is_quoted_) return text;
  std::string frame = head_;
  append_json_text(frame, text);
  return frame += tail_;
}

std::unordered_map<std::string, std::int64_t> LongFrame::hashes_without(
    const std::unordered_set<std::string>& ids) const {
  std::unordered_map<std::string, std::int64_t> hashes;
  for (const SentMessage& message : messages_)
    if (!message.id.empty() && !ids.contains(message.id)) hashes.emplace(message.id, message.hash);
  return hashes;
}

}  // namespace hearth::chat
