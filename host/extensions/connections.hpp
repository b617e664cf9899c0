#pragma once
// hearth.connections/1 and /2: the host's side.

#include "extensions/agent_context.hpp"

#include <hearth/ext/connections_2.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace hearth::extensions {

// What an agent's code may do with its clients. kNotFound: there is no such client of this agent,
// or it is closing.
//
// Threads  As AgentContext.
class ConnectionExtension final : public AgentExtension {
 public:
  explicit ConnectionExtension(AgentContext& agent) : agent_(agent) {}

  // The open client that arrived after `after` (0: the first), with `tag` unless that is empty; 0:
  // no more.
  [[nodiscard]] ConnectionId next(ConnectionId after, std::string_view tag);
  // kForbidden: it is not connecting just now. kInvalidArgument, kLimitExceeded.
  Result<void> add_tag(ConnectionId id, std::string_view tag);
  // kUnsupported: an unknown flag; kForbidden: one that is set while the client connects.
  Result<void> set_flags(ConnectionId id, std::uint32_t flags);
  Result<void> set_attachment(ConnectionId id, std::string_view bytes);
  // kForbidden: the agent does not know it yet. kInvalidArgument, kLimitExceeded: what may not be a
  // frame.
  Result<void> send(ConnectionId id, FrameKind kind, std::string_view payload);
  // To all open ones with `tag` (empty: all) but `except`.
  Result<void> broadcast(FrameKind kind, std::string_view payload, std::string_view tag,
                         std::span<const ConnectionId> except);
  Result<void> close(ConnectionId id, std::uint32_t code, std::string_view reason);

 private:
  [[nodiscard]] Result<void> check_frame(FrameKind kind, std::string_view payload) const;

  AgentContext& agent_;
  std::size_t last_place_ = 0;  // of what next() gave last, among all clients
};

[[nodiscard]] const hearth_connections_v1& connections_extension() noexcept;
[[nodiscard]] const hearth_connections_v2& connections_2_extension() noexcept;

}  // namespace hearth::extensions
