#pragma once
// Chunks of a streamed answer: JSON values in the form of the AI SDK's UIMessageChunk (ai 6 and 7).
//
//     {"type":"text-delta","id":"t1","delta":"Hel"}
//
// The functions are pure, and never throw for a message without a fault (message_fault) and any
// chunk.

#include <hearth/chat/message.hpp>
#include <hearth/json.hpp>

#include <string_view>
#include <vector>

namespace hearth::chat {

enum class Use {
  kStored,     // the message has changed: store the chunk and send it
  kPassed,     // nothing of the message: send it (transient data, errors, ends of steps)
  kReplayed,   // the message is further already: do not send it
  kElsewhere,  // a result of a call that this message has not: look in the earlier ones
  kBad,        // unknown, without a field of its type, or over a limit of messages: clients would
               // end the stream with an error, so do not send it
};

struct Applied {
  Use use = Use::kBad;
  // A chunk to send after it, which is applied already. Null: none. (Input that comes after the
  // request for an approval: the request is sent again.)
  Json follow_up = nullptr;
};

// Applies a chunk to the parts and the metadata of `message`. The messageId of `start` is taken if
// the message has no id.
//
// While a text part is open it has `id`, and while the input of a tool streams its part has
// `inputText`: the AI SDK has neither in a message.
[[nodiscard]] Applied apply_chunk(Json& message, const Json& chunk);

// What the server changes in a chunk before it is stored and sent: `start` gets `message_id`, or,
// if that is empty (a continuation), loses its own; the reason of `finish` moves into its metadata.
void prepare_chunk(Json& chunk, std::string_view message_id);

enum class Closing {
  kTurn,          // the end of a turn: text and reasoning end; calls stay as they are
  kContinuation,  // the next call of the model goes on: reasoning ends, input that still streams
                  // becomes an error, text stays open
};

// The chunks that close the open parts of `message`, in their order. They are not applied.
[[nodiscard]] std::vector<Json> closing_chunks(const Json& message, Closing closing);

// Adds a chunk at the end. A delta that goes on where the last one ends becomes part of it, if both
// have no other fields.
void append_chunk(std::vector<Json>& chunks, Json chunk);

}  // namespace hearth::chat
