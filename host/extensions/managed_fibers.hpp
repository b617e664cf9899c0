#pragma once
// hearth.managed_fibers/1: the host's side, and what hearth.fibers/2 shares with it.

#include "durable/managed_fibers.hpp"
#include "extensions/agent_context.hpp"

#include <hearth/ext/managed_fibers.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace hearth::extensions {

// What an agent's code may ask about its managed fibers. Records are JSON, as
// hearth/ext/managed_fibers.h has them.
//
// Threads, Failure  As AgentContext. Errors are those of durable::ManagedFibers; besides
//                   kInvalidArgument and kClosing as AgentContext::work_refusal().
// Durable           start() and resume() are committed when they return; the others with the turn.
class ManagedFiberExtension {
 public:
  explicit ManagedFiberExtension(AgentContext& agent) : agent_(agent) {}

  Result<durable::ManagedFibers::Started> start(const durable::ManagedRequest& request);
  Result<std::uint64_t> resume(std::string_view id, bool adopts = false);
  // The record, as it is then.
  Result<std::string> settle(std::uint64_t fiber, durable::FiberStatus status,
                             std::string_view body);
  Result<std::string> inspect(std::string_view id, std::string_view key);
  Result<std::string> list(const durable::ManagedFilter& filter);
  // The record, as it is then.
  Result<std::string> cancel(std::string_view id, std::string_view key, std::string_view reason);
  Result<void> resolve(std::string_view id, std::string_view outcome);
  Result<void> retry(std::string_view id);
  Result<std::uint64_t> remove(const durable::ManagedFilter& filter);

 private:
  AgentContext& agent_;
};

// A text for people, from code that has failed: it must not fail for its bytes as well. What is no
// UTF-8 becomes U+FFFD, and what is too long is cut.
[[nodiscard]] std::string readable_reason(std::string_view text);

// Clients that speak the protocol hear what has become of turns (hearth/ext/fibers_2.h), with what
// was written.
void tell_clients_of_turns(Clients& clients, DurableWork& work);
// The frames with what a client that has just come has missed of them
// (ManagedFibers::standing_turns()).
[[nodiscard]] std::vector<std::string> frames_of_standing_turns(DurableWork& work);

[[nodiscard]] const hearth_managed_fibers_v1& managed_fibers_extension() noexcept;

}  // namespace hearth::extensions
