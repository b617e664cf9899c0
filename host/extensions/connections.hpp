#pragma once
// hearth.connections/1: the host's side.

#include "extensions/agent_context.hpp"

#include <hearth/ext/connections.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace hearth::extensions {

// The agent's code uses its clients through this class. kNotFound: the agent has no such client, or
// the client is closing.
//
// Threads  As AgentContext.
class ConnectionExtension final : public AgentExtension {
 public:
  explicit ConnectionExtension(AgentContext& agent) : agent_(agent) {}

  // The open client that arrived next after `after` (0: the first); with a `tag`, only clients that
  // have it. 0: there are no more.
  [[nodiscard]] ConnectionId next(ConnectionId after, std::string_view tag);
  // kForbidden: the client is not in CONNECTING. kInvalidArgument, kLimitExceeded.
  Result<void> add_tag(ConnectionId id, std::string_view tag);
  // kUnsupported: an unknown flag; kForbidden: a flag that may be set only in CONNECTING.
  Result<void> set_flags(ConnectionId id, std::uint32_t flags);
  Result<void> set_attachment(ConnectionId id, std::string_view bytes);
  // kForbidden: the agent does not know the client yet. kInvalidArgument, kLimitExceeded: an
  // invalid or too large frame.
  Result<void> send(ConnectionId id, FrameKind kind, std::string_view payload);
  // Sends to all open clients with `tag` (empty: all clients), except those in `except`.
  Result<void> broadcast(FrameKind kind, std::string_view payload, std::string_view tag,
                         std::span<const ConnectionId> except);
  Result<void> close(ConnectionId id, std::uint32_t code, std::string_view reason);

 private:
  [[nodiscard]] Result<void> check_frame(FrameKind kind, std::string_view payload) const;

  AgentContext& agent_;
  std::size_t last_place_ = 0;  // of the client that next() gave last, in Clients::all()
};

extern const hearth_connections_v1 kConnectionsTable;

}  // namespace hearth::extensions
