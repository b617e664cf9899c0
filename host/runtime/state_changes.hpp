#pragma once
// The changes of a live agent's state: writes of clients, and what is told of a change to them and
// to the instance.

#include "extensions/agent_context.hpp"
#include "extensions/trace.hpp"
#include "runtime/agent_calls.hpp"

#include <cstdint>
#include <memory>
#include <string_view>

namespace hearth::runtime {

class AgentInbox;
class AgentStore;

// Promises
//  P1 Undone  After a rollback by the instance, its state is that of the file, and no frame and no
//             STATE_CHANGED tells of the undone change.
//  P2 Shown   A client whose write was refused gets the state that holds.
//
// P1: Frames that the instance itself has sent leave all the same.
//
// Threads   The agent's shard.
// Lifetime  The parts outlive it.
class StateChanges final : public extensions::StateWatchers {
 public:
  struct Parts {
    extensions::AgentContext& agent;
    const AgentClass& agent_class;
    const ShardServices& services;
    AgentStore& store;
    const AgentClients& clients;
    const AgentCalls& calls;  // for log lines
    CodeOnStack& code;
    AgentInbox& inbox;
    ClassMetrics& figures;
  };
  explicit StateChanges(const Parts& parts) : parts_(parts) {}

  // ---- the write of a client, an event of kind kStateCheck ----
  // Whether it may be stored, and the HTTP status of the answer if not.
  struct Verdict {
    Result<void> accepted;
    unsigned status = 200;
  };
  // Without asking the agent's code.
  [[nodiscard]] Verdict judge(const Event& incoming) const;
  // Stores it, under this span, if it was accepted; answers it.
  void write(Event& incoming, const Verdict& verdict, const extensions::Span& span);

  // A STATE_CHANGED event is entered next. `chain`: EventFreight::state_chain.
  void begin_cause(std::shared_ptr<unsigned> chain);

  // ---- StateWatchers ----
  Result<void> may_change() override;
  void changed(ConnectionId source, std::string_view json, std::uint64_t write) override;
  void undone(std::uint64_t last_write) override;

 private:
  void answer(Event& incoming, const Result<std::string>& outcome, unsigned status = 200);
  void show_true_state(ConnectionId id);
  void tell_instance(ConnectionId source, std::string_view json, std::uint64_t write);

  const Parts parts_;
};

}  // namespace hearth::runtime
