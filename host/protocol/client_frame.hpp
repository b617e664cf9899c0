#pragma once
// Classifies a text frame from a client: a method call, a write of the state, or a message for the
// agent.
//
//   {"type":"rpc","id":"<any string>","method":"add","args":[1,2]}
//   {"type":"cf_agent_state","state":<any JSON>}
//
// Members may come in any order, and other members are ignored. All text that JavaScript's
// JSON.parse accepts is recognised, also beyond Hearth's own bounds: the caller waits, and must get
// an answer. A lone surrogate (half of a pair) becomes U+FFFD, because UTF-8 cannot hold it. A
// frame that is nearly a call or a state write (`args` is not a list, `state` is missing) is a
// message: the clients' own server treats it so, and agents rely on it. Binary frames are always
// messages, and are not classified here.
//
// A member that occurs twice counts as its last value. But in a frame over kLongFrame whose first
// member is the type, and none of the host's two, no other member is looked at: it is a message.

#include <cstddef>
#include <string>
#include <string_view>
#include <variant>

namespace hearth::protocol {

// In bytes. A search in so much takes a tenth of a millisecond. Clients send messages of megabytes,
// and a search in one would hold up other agents for ten.
inline constexpr std::size_t kLongFrame = std::size_t{256} << 10;

// The longest id of a call that is taken, in bytes: it is kept until the call is answered.
inline constexpr std::size_t kMostIdBytes = 1024;

// A call, which must get exactly one answer (or chunks and then exactly one last frame).
struct RpcCall {
  std::string_view id_json;    // the text of a JSON string, the client's choice; echoed unchanged
  std::string method;          // may be unknown, empty, or hold any character
  std::string_view args_json;  // the text of a JSON array
  std::string problem;         // why it is refused, for the caller; empty: it is not
};

// The client replaced the whole state.
struct StateWrite {
  std::string_view state_json;  // the text of any JSON value, `null` included
  std::string problem;          // why it is refused, for the client; empty: it is not
};

// Every other frame goes to the agent's on_message unchanged.
struct UnknownFrame {};

using ClientFrame = std::variant<UnknownFrame, StateWrite, RpcCall>;

// Classifies one text frame. Accepts any bytes. `mended` holds the text if lone surrogates must be
// replaced.
//
// Promises  parse_json accepts args_json and state_json if `problem` is empty.
// Lifetime  the slices point into `text` or `mended`; the rest is owned.
// Bounded   one pass over text that parse_json accepts, otherwise a few, and memory of the text's
//           size. A search for the two type names finds text that cannot be a protocol frame. The
//           caller bounds the size of a frame.
// Failure   none: a frame that is not recognised is an UnknownFrame.
ClientFrame classify_client_frame(std::string_view text, std::string& mended);

}  // namespace hearth::protocol
