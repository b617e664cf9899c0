#pragma once
// What a text frame from a client is: a method call, a write of the state, or a message for the
// agent.
//
//   {"type":"rpc","id":"<any string>","method":"add","args":[1,2]}
//   {"type":"cf_agent_state","state":<any JSON>}
//
// Members may come in any order and others are ignored. All that JavaScript's JSON.parse takes is
// recognised: a caller waits for an answer, and must get one although Hearth has bounds of its own.
// A lone surrogate, half of a character that was cut in two, is U+FFFD in what is handed on: no
// UTF-8 text can hold it. A frame that fails a guard by one hair (args that is no list, a state
// write without `state`) is a message: that is how the clients' own server treats it, and agents
// rely on it. Binary frames are messages always and never come here.

#include <string>
#include <string_view>
#include <variant>

namespace hearth::protocol {

// A call that must be answered exactly once (or with chunks and then exactly one last frame).
struct RpcCall {
  std::string_view id_json;    // the text of a JSON string, the client's choice; echoed as it came
  std::string method;          // may be unknown, empty, or hold any character
  std::string_view args_json;  // the text of a JSON array
  std::string problem;         // why args_json cannot be taken, for the caller; empty: it can
};

// The client replaced the whole state.
struct StateWrite {
  std::string_view state_json;  // the text of any JSON value, `null` included
  std::string problem;          // why it cannot be taken, for the client; empty: it can
};

// Everything else goes to the agent's on_message as it came.
struct UnknownFrame {};

using ClientFrame = std::variant<UnknownFrame, StateWrite, RpcCall>;

// Classifies one text frame. Any bytes are fine. `mended` is used if something in it must be
// replaced.
//
// Promises  parse_json accepts args_json and state_json, unless there is a problem.
// Lifetime  the slices point into `text` or `mended`; the rest is owned.
// Bounded   a few passes over the text at most, one if parse_json accepts it, and memory of its
//           size. Text that cannot be a protocol frame is recognised by a search for the two type
//           names. The caller bounds the size of a frame.
// Failure   none: what is not understood is an UnknownFrame.
ClientFrame classify_client_frame(std::string_view text, std::string& mended);

}  // namespace hearth::protocol
