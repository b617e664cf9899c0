#pragma once
// A long frame with a list of messages, taken apart without parsing it. Clients send their whole
// transcript with each message: nearly all of it is stored already, and is left out of the frame
// that is parsed. A message is known again by the hash of its text as the client has written it.
//
// All functions are pure. They take any bytes, never throw for these, and need some milliseconds
// for ten megabytes: they are for an offload.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace hearth::chat {

// A message of the list, as the client has written it.
struct SentMessage {
  std::string id;         // empty: its id is written with escapes, or another one before has it
  std::int64_t hash = 0;  // of its text
  std::size_t begin = 0;  // of its text in that of the list ...
  std::size_t end = 0;    // ... and its end
  bool is_user = false;
};

// What is known of a list that came in a long frame.
struct SentList {
  std::unordered_set<std::string> stored;  // ids of the messages that were left out of it
  std::unordered_map<std::string, std::int64_t> hashes;  // of the texts of the others, by id
};

class LongFrame {
 public:
  // Nothing: the text has no list that can be told from the rest. read_client_frame() says what it
  // is then.
  [[nodiscard]] static std::optional<LongFrame> split(std::string_view frame);

  // Those that may be left out: not the messages of the user at the end of the list, which belong
  // to the new turn, and not the one before them.
  [[nodiscard]] std::span<const SentMessage> earlier() const noexcept {
    return std::span(messages_).first(earlier_);
  }
  // The frame without these messages.
  [[nodiscard]] std::string without(const std::unordered_set<std::string>& ids) const;
  // Of the messages that without() leaves in.
  [[nodiscard]] std::unordered_map<std::string, std::int64_t> hashes_without(
      const std::unordered_set<std::string>& ids) const;

 private:
  bool take_list(std::size_t begin, std::size_t end);

  std::string head_;  // of the frame, before and behind the JSON string of its body ...
  std::string tail_;  // ... and empty if the list is no part of such a string
  bool is_quoted_ = false;
  std::string text_;            // of the object that has the list
  std::size_t list_begin_ = 0;  // in text_
  std::size_t list_end_ = 0;
  std::vector<SentMessage> messages_;
  std::size_t earlier_ = 0;
};

}  // namespace hearth::chat
