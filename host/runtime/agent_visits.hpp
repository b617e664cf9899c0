#pragma once
// The visits of administrators that wait until their agent is live or cold.

#include "runtime/agent_state.hpp"
#include "runtime/agent_visit.hpp"

#include <cstdint>
#include <utility>
#include <vector>

namespace hearth::runtime {

[[nodiscard]] Error visit_refused();
[[nodiscard]] Error visit_of_destroyed();

// What becomes of a visit.
enum class VisitStep : std::uint8_t {
  kReceive,       // the live agent receives it
  kWait,          // until the agent is live or cold
  kOpen,          // the agent is opened for it
  kAwaitRemoval,  // it waits, and so does the agent, for the removal of files
  kTellCold,      // it has only waited for this
  kRefuse,        // visit_refused()
  kNotFound,      // visit_of_destroyed()
};
// `has_work`: AgentVisit::work. `is_condemned`: the agent is, in whatever state.
[[nodiscard]] VisitStep visit_step(AgentState state, bool has_work, bool is_condemned);

// Threads    The shard's.
class AgentVisits {
 public:
  [[nodiscard]] bool empty() const { return waiting_.empty(); }
  void push(AgentVisit visit) { waiting_.push_back(std::move(visit)); }
  [[nodiscard]] std::vector<AgentVisit> take() { return std::exchange(waiting_, {}); }
  // The agent is live: it receives the visits that have work.
  void go_to(LiveAgent& live);
  // The agent is cold. A destroyed agent is not opened for visits that came before its end.
  void became_cold(bool destroyed);

 private:
  std::vector<AgentVisit> waiting_;
};

}  // namespace hearth::runtime
