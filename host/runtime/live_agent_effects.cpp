// Effects of an agent leave, or are lost: to its clients, and to callers that wait for answers.
#include "base/escape.hpp"
#include "runtime/live_agent.hpp"
#include "runtime/shard_services.hpp"

#include <utility>
#include <variant>

namespace hearth::runtime {

void LiveAgent::end_connection(Connection& connection, std::uint16_t code,
                               std::string_view reason) {
  connection.closing = true;
  outbox_.push(CloseEffect{connection.id, code, std::string(cut_text(reason, kMaxCloseReason))});
}

void LiveAgent::apply(Effect& effect) {
  std::visit([this](auto& each) { let_out(each); }, effect);
}

void LiveAgent::let_out(FrameEffect& frame) {
  // Also to a client that is closing: the frame was sent before the close.
  if (frame.to.size() == 1) {
    if (Connection* client = clients_.connection(frame.to.front()))
      client->port->send(frame.payload, frame.kind);
    return;
  }
  if (frame.to.empty()) return;
  const SharedBytes shared(services_.client_memory, std::move(frame.payload));
  for (const ConnectionId to : frame.to) {
    if (Connection* client = clients_.connection(to)) client->port->send_shared(shared, frame.kind);
  }
}

void LiveAgent::let_out(const CloseEffect& close) {
  if (Connection* client = clients_.connection(close.connection))
    client->port->close(close.code, close.reason);
}

void LiveAgent::let_out(const HandshakeEffect& handshake) {
  Connection* client = clients_.connection(handshake.connection);
  if (client == nullptr) return;
  std::optional<std::string_view> state;
  if (handshake.state) state = *handshake.state;
  const std::string name = parts_.key.own_name();
  client->port->send_handshake({.agent_segment = parts_.segment,
                                .agent_name = name,
                                .state = state,
                                .identity = settings().send_identity});
}

void LiveAgent::let_out(const PartEffect& part) {
  if (part.connection == 0 || clients_.connection(part.connection) != nullptr)
    part.sink->part(part.head, part.body);
}

void LiveAgent::let_out(const FinishEffect& answer) {
  if (answer.connection != 0 && clients_.connection(answer.connection) == nullptr) return;
  if (answer.outcome.has_error()) {
    answer.sink->finish(answer.head, answer.outcome.error());
  } else {
    answer.sink->finish(answer.head, std::string_view(answer.outcome.value()));
  }
}

// A job that was accepted and cannot run is called, so that it cleans up.
void LiveAgent::let_out(const OffloadEffect& job) {
  if (!operations_.let_out(job)) (void)class_->run_offloaded(job.job, true, origin_of(job));
}

void LiveAgent::discard(Effect& effect) {
  if (auto* answer = std::get_if<FinishEffect>(&effect)) {
    if (answer->connection != 0 && clients_.connection(answer->connection) == nullptr) return;
    const Result<std::string_view> lost = storage_error_for_clients();
    answer->sink->finish(ResponseHead{500, {}}, lost);
  } else if (auto* closing = std::get_if<CloseEffect>(&effect)) {
    if (Connection* client = clients_.connection(closing->connection)) {
      client->port->close(kCloseInternalError, "the agent's storage failed");
    }
  } else if (auto* handshake = std::get_if<HandshakeEffect>(&effect)) {
    // Without its handshake the client would wait forever. It may come back after the close.
    if (Connection* client = clients_.connection(handshake->connection)) {
      client->closing = true;
      client->port->close(kCloseInternalError, "the agent's storage failed");
    }
  } else if (const auto* job = std::get_if<OffloadEffect>(&effect)) {
    *job->abandoned = true;
    let_out(*job);
  }
}

}  // namespace hearth::runtime
