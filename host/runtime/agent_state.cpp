#include "runtime/agent_state.hpp"

#include "base/assert.hpp"

#include <algorithm>
#include <array>
#include <type_traits>

namespace hearth::runtime {
namespace {

constexpr auto kEdges = [] {
  using enum AgentState;
  return std::to_array<std::pair<AgentState, AgentState>>({
      {kCold, kAwaitingRoom},
      {kCold, kAwaitingVersion},
      {kCold, kCondemned},
      {kCold, kOpened},
      {kCold, kWaking},
      {kAwaitingRoom, kCold},
      {kAwaitingRoom, kWaking},
      {kAwaitingVersion, kCold},
      {kCondemned, kCold},
      {kOpened, kEnding},
      {kWaking, kLive},
      {kWaking, kEnding},
      {kLive, kLeaving},
      {kLive, kEnding},
      {kLeaving, kEnding},
      {kEnding, kCold},
  });
}();

}  // namespace

bool follows(AgentState from, AgentState to) noexcept {
  return std::ranges::find(kEdges, std::pair(from, to)) != kEdges.end();
}

const Resident* AgentLife::resident() const {
  return std::visit(
      [](const auto& state) -> const Resident* {
        if constexpr (std::is_base_of_v<Resident, std::remove_cvref_t<decltype(state)>>) {
          return &state;
        } else {
          return nullptr;
        }
      },
      data_);
}

void AgentLife::check(AgentState from) const {
  HEARTH_ASSERT(follows(from, state()), "an agent in a state that does not follow");
}

}  // namespace hearth::runtime
