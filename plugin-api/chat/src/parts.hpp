#pragma once
// Reading fields of JSON values of any form, and the parts of messages.

#include <hearth/chat/chunk.hpp>
#include <hearth/json.hpp>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::chat::parts {

// The field of an object. Null: `value` is no object, or has no such field.
[[nodiscard]] const Json* find(const Json& value, std::string_view key);
// Empty if the field is no string.
[[nodiscard]] const std::string& text(const Json& value, std::string_view key);
[[nodiscard]] bool is_true(const Json& value, std::string_view key);
// A string of 1 to kMaxIdBytes bytes.
[[nodiscard]] bool has_id(const Json& value, std::string_view key);
[[nodiscard]] bool is_deeper(const Json& value, int levels);

// Discarded if the text is no JSON.
[[nodiscard]] Json read(std::string_view json);

// Sets those fields that `from` has.
void copy(Json& to, const Json& from, std::initializer_list<std::string_view> keys);
void copy_as(Json& to, std::string_view to_key, const Json& from, std::string_view from_key);
// Adds the fields of an object to those that are there, at each level. Null changes nothing.
void merge(Json& to, std::string_view to_key, const Json* from);

[[nodiscard]] Json& of(Json& message);
[[nodiscard]] const Json& of(const Json& message);
// False if the message is full.
[[nodiscard]] bool push(Json& message, Json part);
// The end of the piece of at most kPieceBytes that begins at `begin`, not inside a character.
[[nodiscard]] std::size_t piece_end(std::string_view text, std::size_t begin);
// The last tool part of this call. Null: there is none.
[[nodiscard]] Json* find_call(Json& message, std::string_view call);
// How far a tool part is: 0 while its input streams, 4 once it is settled.
[[nodiscard]] int progress(const Json& part);
// The JSON text of an object as that object; {} for what is neither.
[[nodiscard]] Json as_input(const Json& input);
// What two assistant messages have in common if they are one: a text for each call, or, without
// calls, one for the content, with the id of the call or an empty id. No message has one id twice.
struct Key {
  std::string call;
  std::string text;
};
[[nodiscard]] std::vector<Key> keys_of(const Json& message);
// As it is stored. If it changes (with the standard library), messages are written once more.
[[nodiscard]] std::int64_t hash(std::string_view text);
// Ends the streaming of a tool's input. What was streamed becomes the input if there is no other.
void end_input(Json& part);

// The chunks whose type begins with "tool-" (tool_chunk.cpp).
[[nodiscard]] Applied apply_tool_chunk(Json& message, const Json& chunk);

}  // namespace hearth::chat::parts
