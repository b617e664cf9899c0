#pragma once
// The states of an agent on its shard, what exists in each state, and the transitions.

#include "base/error.hpp"
#include "runtime/class_registry.hpp"
#include "runtime/live_agent.hpp"
#include "runtime/loop_timer.hpp"
#include "runtime/version_trial.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <variant>

namespace hearth::runtime {

// state              what is true
// kCold              no instance; events wait only if the class is not served
// kAwaitingRoom      no instance; it stands in the line of Admission
// kAwaitingVersion   no instance; it failed to start on a version under trial, and its events wait
//                    until the trial is decided
// kCondemned         no instance; the files of a destroyed agent of this name are being removed;
//                    the events that wait meet a new agent afterwards
// kOpened            no instance; its database and the host's halves of the extensions are open
//                    for visits (agent_visit.hpp). Lasts less than one task of the shard: other
//                    tasks see kEnding, with Ending::was_only_opened()
// kWaking            an instance is made, and MIGRATE or START is in progress
// kLive              events are delivered
// kLeaving           EVICT is in progress, and no other event is delivered
// kEnding            no event is delivered; the end is certain: posted, waiting for its turn, or
//                    in progress, perhaps on another thread
//
// kOpened to kEnding are the states of an agent in memory. A loan of the database to another thread
// (AgentStore::lend) is no state of its own: it may happen in the last three.
//
// Words: an agent is *asked to leave* (EVICT), it *ends* (the instance is destroyed), it is *gone*
// (its database is closed). An agent that *must leave* does so at a moment of its own choice.
enum class AgentState : std::uint8_t {
  kCold,
  kAwaitingRoom,
  kAwaitingVersion,
  kCondemned,
  kOpened,
  kWaking,
  kLive,
  kLeaving,
  kEnding,
};
inline constexpr std::size_t kAgentStates = 9;

// Whether an agent that was `from` may be `to` next. False: a bug of the shard.
[[nodiscard]] bool follows(AgentState from, AgentState to) noexcept;

// The agent must leave: before its next event, or, with `when_idle`, at its next idle moment.
struct Intent {
  EvictReason reason{};
  bool when_idle = false;
};

// The claim of a busy agent to try a version once it is idle. While it is held, the trial counts a
// candidate.
struct LosesCandidate {
  std::shared_ptr<VersionTrial> trial;
  void operator()(VersionTrial* /*trial*/) const { trial->lose_candidate(); }
};
using Candidacy = std::unique_ptr<VersionTrial, LosesCandidate>;
[[nodiscard]] inline Candidacy candidacy_in(std::shared_ptr<VersionTrial> trial) {
  ++trial->candidates;
  VersionTrial* const its = trial.get();
  return {its, LosesCandidate{std::move(trial)}};
}

// An agent in memory.
struct Resident {
  std::shared_ptr<const ServedClass> served;
  std::unique_ptr<LiveAgent> live = nullptr;  // null: its database could not be opened
  AgentHandle handle = 0;
  bool is_tried = false;  // its version's StartCounts have it
  bool settling = false;  // its events are being settled, or must not be now
};

struct Cold {};
struct AwaitingRoom {
  bool for_itself = false;  // for its durable work: no event waited when it joined the line
  SteadyTime since{};
};
struct AwaitingVersion {
  std::shared_ptr<StartCounts> version;  // tells versions apart, and keeps no code loaded
  Error failure;
  LoopTimer timer;  // the limit of the wait for a decision
  SteadyTime since{};
};
struct Condemned {};
struct Opened : Resident {};
struct Waking : Resident {
  std::optional<Intent> intent = std::nullopt;
  SteadyTime since{};
  extensions::Span span = {};  // of making the instance; MIGRATE and START are below it
};
struct Live : Resident {
  [[nodiscard]] bool leaves_before_event() const { return intent && !intent->when_idle; }

  std::optional<Intent> intent = std::nullopt;
  Candidacy candidacy;
  LoopTimer idle_timer;
  bool trimmed = false;        // gave back its caches
  bool goes_on_later = false;  // a task is posted, and no waiting event is delivered before it
  bool looks_soon = false;     // a task is posted that looks for due durable work
};
struct Leaving : Resident {
  EvictReason reason{};
  bool wake_again = false;
  SteadyTime since{};
};
struct Ending : Resident {
  enum class Pace : std::uint8_t { kWaitsForTurn, kPosted, kUnderWay };
  struct StartFailure {
    Error error;
    bool is_for_clients = false;  // false: clients get a general text
    CallId call = 0;              // the call that failed; 0: none had begun, or all had ended
    extensions::Span span = {};
  };

  EvictReason reason{};
  bool wake_again = false;
  std::optional<StartFailure> start_failure = std::nullopt;
  AgentState from{};              // the state that has ended
  bool lost_descriptors = false;  // another taker got those that Admission had found
  Pace pace = Pace::kPosted;
  bool has_come_for_work = false;  // its time has come, or its code, while it was only open

  [[nodiscard]] bool was_only_opened() const { return from == AgentState::kOpened; }
  [[nodiscard]] bool had_started() const {
    return from == AgentState::kLive || from == AgentState::kLeaving;
  }
};

// The state of an agent. enter() is the only way to change it.
// Threads  The shard's.
class AgentLife {
 public:
  [[nodiscard]] AgentState state() const { return static_cast<AgentState>(data_.index()); }
  // Null: the agent is in another state. Valid until the next enter().
  template <class State>
  [[nodiscard]] State* as() {
    return std::get_if<State>(&data_);
  }
  template <class State>
  [[nodiscard]] const State* as() const {
    return std::get_if<State>(&data_);
  }
  // Null: the agent is not in memory. Valid until the next enter(): before it, the caller moves
  // what must survive into the next state.
  [[nodiscard]] Resident* resident() {
    return const_cast<Resident*>(std::as_const(*this).resident());
  }
  [[nodiscard]] const Resident* resident() const;
  [[nodiscard]] bool in_memory() const { return resident() != nullptr; }
  // Null: the agent is not in memory, or its database could not be opened and it ends.
  [[nodiscard]] LiveAgent* live() const {
    const Resident* const found = resident();
    return found == nullptr ? nullptr : found->live.get();
  }
  // The version of its code; null: the agent is not in memory.
  [[nodiscard]] const ServedClass* version() const {
    const Resident* const found = resident();
    return found == nullptr ? nullptr : found->served.get();
  }
  // The agent is in memory for visits alone, without an instance.
  [[nodiscard]] bool is_only_open() const {
    const Ending* const ending = as<Ending>();
    return as<Opened>() != nullptr || (ending != nullptr && ending->was_only_opened());
  }

  // The state must follow the old one, whose content is destroyed; otherwise the process ends.
  template <class State>
  State& enter(State next) {
    const AgentState from = state();
    State& entered = data_.emplace<State>(std::move(next));
    check(from);
    return entered;
  }

 private:
  // In the order of AgentState.
  using Data = std::variant<Cold, AwaitingRoom, AwaitingVersion, Condemned, Opened, Waking, Live,
                            Leaving, Ending>;
  static_assert(std::variant_size_v<Data> == kAgentStates);

  void check(AgentState from) const;

  Data data_;
};

}  // namespace hearth::runtime
