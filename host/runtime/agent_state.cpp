#include "runtime/agent_state.hpp"

#include "base/assert.hpp"

#include <array>
#include <type_traits>

namespace hearth::runtime {
namespace {

struct Edge {
  AgentState from;
  AgentInput input;
  AgentState to;
};

constexpr auto kEdges = [] {
  using enum AgentState;
  using enum AgentInput;
  return std::to_array<Edge>({
      {kCold, kNoRoom, kAwaitingRoom},
      {kCold, kUndecided, kAwaitingVersion},
      {kCold, kRemoval, kCondemned},
      {kCold, kOpen, kOpened},
      {kCold, kAdmitted, kWaking},
      {kAwaitingRoom, kStopsWaiting, kCold},
      {kAwaitingRoom, kAdmitted, kWaking},
      {kAwaitingVersion, kStopsWaiting, kCold},
      {kCondemned, kStopsWaiting, kCold},
      {kOpened, kEnd, kEnding},
      {kWaking, kStarted, kLive},
      {kWaking, kEnd, kEnding},
      {kLive, kLeave, kLeaving},
      {kLive, kEnd, kEnding},
      {kLeaving, kEnd, kEnding},
      {kEnding, kGone, kCold},
  });
}();

template <class To, class Data>
To* resident_of(Data& data) {
  return std::visit(
      [](auto& state) -> To* {
        if constexpr (std::is_base_of_v<Resident, std::remove_cvref_t<decltype(state)>>) {
          return &state;
        } else {
          return nullptr;
        }
      },
      data);
}

}  // namespace

std::optional<AgentState> next_state(AgentState from, AgentInput input) noexcept {
  for (const Edge& edge : kEdges) {
    if (edge.from == from && edge.input == input) return edge.to;
  }
  return std::nullopt;
}

Resident* AgentLife::resident() {
  return resident_of<Resident>(data_);
}

const Resident* AgentLife::resident() const {
  return resident_of<const Resident>(data_);
}

void AgentLife::check(AgentState from, AgentInput input) const {
  HEARTH_ASSERT(next_state(from, input) == state(), "an agent in a state that does not follow");
}

}  // namespace hearth::runtime
