#pragma once
// What a text frame from a client is: a method call, a write of the state, or a message for the agent.
//
//   {"type":"rpc","id":"<any string>","method":"add","args":[1,2]}
//   {"type":"cf_agent_state","state":<any JSON>}
//
// Members may come in any order and others are ignored. A frame that fails a guard by one hair (args
// that is no list, a state write without `state`) is a message: that is how the clients' own
// server treats it, and agents rely on it. Binary frames are messages always and never come here.

#include <string>
#include <string_view>
#include <variant>

namespace hearth::protocol {

// A call that must be answered exactly once (or with chunks and then exactly one last frame).
struct RpcCall {
  std::string id;              // the client's choice, may be any text; echoed in the answers
  std::string method;          // as sent: may be unknown, empty, or hold any character
  std::string_view args_json;  // the text of a JSON array
};

// The client replaced the whole state.
struct StateWrite {
  std::string_view state_json;  // the text of any JSON value, `null` included
};

// Everything else goes to the agent's on_message as it came.
struct UnknownFrame {};

using ClientFrame = std::variant<UnknownFrame, StateWrite, RpcCall>;

// Classifies one text frame. Any bytes are fine.
//
// Promises  a frame that is not UnknownFrame is, as a whole, text that parse_json accepts.
// Lifetime  the slices point into `text`; id and method are owned.
// Bounded   one pass over the text at most, and memory for id and method. Text that cannot be a
//           protocol frame is recognised by a search for the two type names. The caller bounds the size of a frame.
// Failure   none: what is not understood is an UnknownFrame.
ClientFrame classify_client_frame(std::string_view text);

}  // namespace hearth::protocol
