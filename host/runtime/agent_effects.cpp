#include "runtime/agent_effects.hpp"

#include "runtime/agent_calls.hpp"
#include "runtime/shard_services.hpp"

#include <utility>
#include <variant>

namespace hearth::runtime {

void AgentEffects::apply(Effect& effect) {
  std::visit([this](auto& each) { let_out(each); }, effect);
}

void AgentEffects::let_out(FrameEffect& frame) {
  // Also to a client that is closing: the frame was sent before the close.
  if (frame.to.size() == 1) {
    if (Connection* client = parts_.clients.connection(frame.to.front()))
      client->port->send(frame.payload, frame.kind);
    return;
  }
  if (frame.to.empty()) return;
  const SharedBytes shared(parts_.services.client_memory, std::move(frame.payload));
  for (const ConnectionId to : frame.to) {
    if (Connection* client = parts_.clients.connection(to))
      client->port->send_shared(shared, frame.kind);
  }
}

void AgentEffects::let_out(const CloseEffect& close) {
  if (Connection* client = parts_.clients.connection(close.connection))
    client->port->close(close.code, close.reason);
}

void AgentEffects::let_out(const HandshakeEffect& handshake) {
  Connection* client = parts_.clients.connection(handshake.connection);
  if (client == nullptr) return;
  std::optional<std::string_view> state;
  if (handshake.state) state = *handshake.state;
  const std::string name = parts_.key.own_name();
  client->port->send_handshake({.agent_segment = parts_.segment,
                                .agent_name = name,
                                .state = state,
                                .identity = parts_.settings.send_identity});
}

void AgentEffects::let_out(const PartEffect& part) {
  if (is_there(part.connection)) part.sink->part(part.head, part.body);
}

void AgentEffects::let_out(const FinishEffect& answer) {
  if (is_there(answer.connection)) answer.sink->finish(answer.head, answer.outcome);
}

// A job that was accepted and cannot run is called, so that it cleans up.
void AgentEffects::let_out(const OffloadEffect& job) {
  if (!parts_.operations.let_out(job))
    (void)parts_.agent_class.run_offloaded(job.job, true, {parts_.key.name, job.work});
}

void AgentEffects::discard(Effect& effect) {
  if (auto* answer = std::get_if<FinishEffect>(&effect)) {
    if (!is_there(answer->connection)) return;
    const Result<std::string_view> lost = storage_error_for_clients();
    answer->sink->finish(ResponseHead{500, {}}, lost);
  } else if (auto* closing = std::get_if<CloseEffect>(&effect)) {
    if (Connection* client = parts_.clients.connection(closing->connection)) {
      client->port->close(kCloseInternalError, "the agent's storage failed");
    }
  } else if (auto* handshake = std::get_if<HandshakeEffect>(&effect)) {
    // Without its handshake the client would wait forever. It may come back after the close.
    if (Connection* client = parts_.clients.connection(handshake->connection)) {
      client->closing = true;
      client->port->close(kCloseInternalError, "the agent's storage failed");
    }
  } else if (const auto* job = std::get_if<OffloadEffect>(&effect)) {
    *job->abandoned = true;
    let_out(*job);
  }
}

}  // namespace hearth::runtime
