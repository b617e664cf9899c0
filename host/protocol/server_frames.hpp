#pragma once
// The text frames that the server sends to clients of the agents protocol.
//
// Order on a new connection: identity, then the state (when there is one), then the MCP servers,
// then whatever the agent sends. Later frames may interleave in any way, but the state that a call
// has set goes out before the call's answer.
//
// Parameters that end in `_json` must be valid JSON text: they are copied as they are. All others
// are plain text and are escaped; bytes that are no UTF-8 become U+FFFD. Member `type` comes first.

#include <string>
#include <string_view>

namespace hearth::protocol {

// Whether the very next frame is the state. A client that is told so holds back its `ready` until
// the state comes, and hangs when it never does.
enum class StateFollows { kNo, kYes };

// `name` as it stands in the URL, not decoded: clients compare it across reconnects.
std::string identity_frame(std::string_view name, std::string_view class_segment,
                           StateFollows state_follows);

// An empty text: there is none any more. Clients then have `undefined`.
std::string state_frame(std::string_view state_json);

// For the sender of a refused state write only. The texts that clients know follow.
std::string state_error_frame(std::string_view message);
inline constexpr std::string_view kReadonlyConnection = "Connection is readonly";
inline constexpr std::string_view kStateRejected = "State update rejected";

// Hearth has no MCP servers; clients expect the frame in the handshake all the same.
std::string_view mcp_servers_frame();

// The answer to a call that has a value, and to one that has none. A void answer has no `result`:
// clients tell the two apart. The same two end a stream, with and without a last value.
std::string rpc_result_frame(std::string_view id_json, std::string_view result_json);
std::string rpc_void_frame(std::string_view id_json);

// One value of a stream that goes on.
std::string rpc_chunk_frame(std::string_view id_json, std::string_view chunk_json);

// The end of a call that failed, streaming or not. `message` is what the caller sees: no internals.
std::string rpc_error_frame(std::string_view id_json, std::string_view message);

}  // namespace hearth::protocol
