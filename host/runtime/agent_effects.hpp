#pragma once
// Where the effects of an agent go: to its clients, its callers and its operations.

#include "runtime/agent_class.hpp"
#include "runtime/agent_clients.hpp"
#include "runtime/agent_operations.hpp"
#include "runtime/outbox.hpp"

#include <memory>
#include <string>

namespace hearth::runtime {

struct ShardServices;

// An effect for a client that has left is dropped.
//
// Threads   The agent's shard.
// Lifetime  The parts outlive it.
class AgentEffects final : public EffectPort {
 public:
  struct Parts {
    const storage::AgentKey& key;
    const std::string& segment;  // how URLs name the class
    const ShardServices& services;
    const extensions::ClassSettings& settings;
    const AgentClass& agent_class;
    const AgentClients& clients;
    AgentOperations& operations;
  };
  explicit AgentEffects(const Parts& parts) : parts_(parts) {}

  void apply(Effect& effect) override;
  // Callers get an error, and clients that would wait are closed.
  void discard(Effect& effect) override;

 private:
  void let_out(FrameEffect& frame);
  void let_out(const CloseEffect& close);
  void let_out(const HandshakeEffect& handshake);
  void let_out(const PartEffect& part);
  void let_out(const FinishEffect& answer);
  void let_out(const OffloadEffect& job);
  void let_out(const DrainEffect& drain) { parts_.operations.let_out(drain); }
  void let_out(const RemoteEffect& remote) { parts_.operations.let_out(remote); }
  // The answer is for no client, or for one that is there.
  [[nodiscard]] bool is_there(ConnectionId id) const {
    return id == 0 || parts_.clients.connection(id) != nullptr;
  }

  const Parts parts_;
};

}  // namespace hearth::runtime
