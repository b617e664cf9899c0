#pragma once
// Messages of a chat: JSON values in the form of the AI SDK's UIMessage (ai 6 and 7).
//
//     {"id":"m1","role":"assistant","parts":[{"type":"text","text":"Hello","state":"done"}]}
//
// A tool part is `tool-<name>` or `dynamic-tool`. Its states: input-streaming, input-available,
// approval-requested, approval-responded (these are pending), output-available, output-error,
// output-denied (these are settled).
//
// All functions are pure. They expect messages without a fault (message_fault) and never throw for
// these.

#include <hearth/json.hpp>

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::chat {

inline constexpr std::size_t kMaxIdBytes = 256;  // of messages, requests, tool calls, tools
inline constexpr std::size_t kMaxMessageBytes = std::size_t{16} << 20;  // of a message as text
// Longer texts are stored in pieces, so that a row is far below the host's 2 MiB.
inline constexpr std::size_t kPieceBytes = std::size_t{1} << 20;
inline constexpr std::size_t kMaxParts = 10'000;  // of one message
inline constexpr int kMaxDepth = 64;              // levels of arrays and objects in a message
// Most levels of a value in a part: the message, its parts and the part are three more.
inline constexpr int kMaxValueDepth = kMaxDepth - 3;

// Why `message` is no message, as a sentence for a client. Empty if it is one: with an id, a role,
// and at most kMaxParts parts that have the fields of their type. Does not measure its text.
[[nodiscard]] std::string message_fault(const Json& message);

[[nodiscard]] bool is_tool_part(const Json& part);
// The tool of a tool part, as long as the part lives.
[[nodiscard]] std::string_view tool_of(const Json& part);
// Whether the tool part has a result: an output, an error or a denial.
[[nodiscard]] bool is_settled(const Json& part);

// Takes out what is not stored:
//   - `itemId` and `reasoningEncryptedContent` of OpenAI, which refuses them in a later call;
//   - reasoning without text and without provider metadata;
//   - what is over 500 characters in a string of a tool that the provider has run, except of
//     web_search and web_fetch and in fields whose name begins with `encrypted`;
//   - the text of a tool's input, which is there while the input streams.
// A second time changes nothing.
void sanitize(Json& message);

// ---- before a call of the model -----------------------------------------------------------------

struct RepairRules {
  bool is_last = false;                   // no message is behind it
  std::vector<std::string> client_tools;  // their calls can still be answered
  // The author's hook: another part for an unsettled tool part. It is used only if it is a part
  // of a message, and a settled one if it is a tool part.
  std::function<std::optional<Json>(const Json& part)> replace;
};

// Some call of the message has no result yet.
[[nodiscard]] bool is_pending(const Json& message);

// Gives each tool call that no client can answer any more a result, and each tool part an input
// that is an object: JSON text of an object is read, any other value becomes {}.
// An approval that has not been asked, and one that is answered in the last message, stay.
// Returns whether the message has changed.
bool repair(Json& message, const RepairRules& rules);

// ---- what a client answers ----------------------------------------------------------------------

enum class Answer {
  kTaken,
  kLate,    // the call has a result, or an answer, already: the first one stays
  kNoCall,  // not in this message
};

[[nodiscard]] Answer answer_call(Json& message, std::string_view call, Json output);
// `text` empty: a sentence says that the tool has failed.
[[nodiscard]] Answer fail_call(Json& message, std::string_view call, std::string_view text);
// A rejection settles the call as denied.
[[nodiscard]] Answer approve_call(Json& message, std::string_view call, bool is_approved);

// ---- what a client sends again ------------------------------------------------------------------

struct Reconciled {
  // The incoming ones in their order. No two of them have one id.
  Json messages = Json::array();
  // Each of them is stored: so what is stored and not among them may be deleted (regenerate).
  bool are_all_stored = true;
};

// Finds out which stored message each incoming one is, for a client makes its own ids:
//   1. the one with its id;
//   2. for an assistant message with tool parts, the first stored one that shares a call, if type
//      and input of all shared calls are equal;
//   3. for an assistant message without, the first stored one with equal sanitised parts.
// Each stored message is found once. The incoming one gets its id. A tool part that is further in
// the stored message is taken from there. A copy from the middle of a stream becomes the stored
// one: a text of it is open, or a call is further in the stored message, and each of its texts is
// the beginning of the stored one. An assistant message that is not the last one, is not found, and
// has only pending calls that are settled in a message that was found, is left out.
//
// Messages that both lists have, with the same id and text, may be left out of both, if no other
// incoming message shares a call with them. The last incoming message stays.
[[nodiscard]] Reconciled reconcile(Json incoming, const Json& stored);

}  // namespace hearth::chat
