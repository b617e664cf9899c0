#pragma once
// The mock host's savepoints, and the state that follows them.

#include <hearth/testing/engine.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace hearth::testing::detail {

// Clients and events hear of what no rollback can undo any more.
inline void tell_states(Engine& engine, AgentRecord& agent) {
  for (const std::string& text : std::exchange(agent.untold, {})) {
    engine.show_state(agent, 0);
    engine.state_changed(agent, 0, text);
  }
}

inline void end_savepoints(Engine& engine, AgentRecord& agent, std::uint32_t depth) {
  if (agent.savepoints.size() >= depth) agent.savepoints.resize(depth - 1);
  if (agent.savepoints.empty()) tell_states(engine, agent);
}

// The agent sets its state.
inline void put_state(Engine& engine, AgentRecord& agent, std::string_view text) {
  agent.state = std::string(text);
  agent.untold.push_back(*agent.state);
  if (agent.savepoints.empty()) tell_states(engine, agent);
}

// ---- those still open when the turn ends are kept
inline std::uint32_t open_savepoint(AgentRecord& agent) {
  agent.savepoints.push_back({agent.state, agent.untold.size()});
  return agent.database.begin();
}
inline hearth_status keep_savepoint(Engine& engine, AgentRecord& agent, std::uint32_t depth) {
  const hearth_status status = agent.database.release(depth);
  if (status == HEARTH_OK) end_savepoints(engine, agent, depth);
  return status;
}
inline hearth_status undo_savepoint(Engine& engine, AgentRecord& agent, std::uint32_t depth) {
  const hearth_status status = agent.database.rollback(depth);
  if (status != HEARTH_OK) return status;
  const AgentRecord::Savepoint& before = agent.savepoints[depth - 1];
  agent.state = before.state;
  agent.untold.resize(before.untold);
  end_savepoints(engine, agent, depth);
  return status;
}

}  // namespace hearth::testing::detail
