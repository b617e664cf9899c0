#pragma once
// The text frames that the server sends to clients of the agents protocol.
//
// Order on a new connection: identity, then the state (if there is one), then the MCP servers, then
// the agent's frames. Later frames may interleave in any way, but a state that a call sets is sent
// before the call's answer.
//
// Parameters that end in `_json` must be valid JSON text: they are copied unchanged. All others are
// plain text and are escaped; bytes that are not UTF-8 become U+FFFD. Member `type` comes first.

#include <string>
#include <string_view>

namespace hearth::protocol {

// Whether the very next frame is the state. With kYes a client delays its `ready` until the state
// comes, and hangs if the state never comes.
enum class StateFollows { kNo, kYes };

// `name` as in the URL, not decoded: clients compare it across reconnects.
std::string identity_frame(std::string_view name, std::string_view class_segment,
                           StateFollows state_follows);

// An empty text: the state was removed. Clients then have `undefined`.
std::string state_frame(std::string_view state_json);

// Only for the sender of a refused state write. Clients know the two texts below.
std::string state_error_frame(std::string_view message);
inline constexpr std::string_view kReadonlyConnection = "Connection is readonly";
inline constexpr std::string_view kStateRejected = "State update rejected";

// An empty list: Hearth has no MCP servers, but clients expect the frame in the handshake.
std::string_view mcp_servers_frame();

// The answer to a call with a value, and without one. A void answer has no `result`: clients
// distinguish the two. These frames also end a stream, with and without a last value.
std::string rpc_result_frame(std::string_view id_json, std::string_view result_json);
std::string rpc_void_frame(std::string_view id_json);

// One value of a stream that continues.
std::string rpc_chunk_frame(std::string_view id_json, std::string_view chunk_json);

// The end of a failed call, streaming or not. The caller sees `message`: no internals.
std::string rpc_error_frame(std::string_view id_json, std::string_view message);

}  // namespace hearth::protocol
