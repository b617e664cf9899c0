#include "mock/mock_router.hpp"

#include "mock/stored_agent.hpp"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace hearth::mock {

// The state that both ends share. The caller's end, and its listener, may go first.
struct MockCallState {
  extensions::AgentCall call;
  SteadyTime due{};                                // the deadline for its end, or its next part
  StoredAgent* callee = nullptr;                   // null: the call was not delivered yet
  std::shared_ptr<CallRecord> its_call;            // the event at the callee
  extensions::RemoteListener* listener = nullptr;  // null: not started, or abandoned
  std::uint64_t credit = 0;
  bool began = false;
  std::deque<std::string> parts;
  std::optional<Result<std::string>> end;

  void tell() {
    while (listener != nullptr && !parts.empty() && credit > 0) {
      credit -= std::min<std::uint64_t>(credit, parts.front().size());
      listener->part(std::exchange(parts.front(), {}), 0);
      parts.pop_front();
    }
    if (listener == nullptr || !end || !parts.empty()) return;
    const std::uint32_t flags = end->has_error() && began ? extensions::kCallBegan : 0U;
    std::exchange(listener, nullptr)->end(*std::move(end), flags);
  }
};

namespace {

using MockCallPtr = std::shared_ptr<MockCallState>;

// The default of limits.call_timeout.
constexpr std::chrono::minutes kUsualTime{5};

std::chrono::milliseconds time_of(const extensions::AgentCall& call) {
  return call.timeout.count() > 0 ? call.timeout : kUsualTime;
}

// Whether the callee waits for this call itself, and so cannot begin it.
bool waits_for(const StoredAgent* callee, const extensions::AgentCall& call) {
  if (callee == nullptr) return false;
  const bool runs_alone =
      callee->call_order().runs_alone(extensions::EventKind::kCall, call.method);
  return std::ranges::any_of(call.origin->waiting, [&](const extensions::WaitingAgent& each) {
    return each.agent == callee->key() && (runs_alone || each.alone);
  });
}

void deliver_call(World& world, StoredAgent& callee, const MockCallPtr& state) {
  Incoming event{.kind = extensions::EventKind::kCall,
                 .name = state->call.method,
                 .body = state->call.arguments};
  event.origin = state->call.origin;
  state->callee = &callee;
  state->its_call = event.record = std::make_shared<CallRecord>();
  event.begun = [state] { state->began = true; };
  event.part = [state, &clock = world.clock](std::string_view part) {
    state->due = clock.steady_now() + time_of(state->call);
    state->parts.emplace_back(part);
    state->tell();
  };
  event.abandoned = [state] { return state->listener == nullptr; };
  event.then = [state](const Result<std::string_view>& outcome) {
    if (state->end) return;
    if (outcome.has_error()) {
      state->end = Result<std::string>(outcome.error());
    } else {
      state->end = Result<std::string>(std::string(*outcome));
    }
    state->tell();
  };
  callee.receive_call(std::move(event));
}

class MockCall final : public extensions::RemoteOperation {
 public:
  MockCall(World& world, const MockRouter::Find& find, MockCallPtr state)
      : world_(world), find_(find), state_(std::move(state)) {}
  ~MockCall() override { state_->listener = nullptr; }

  void start(extensions::RemoteListener& listener) override {
    state_->listener = &listener;
    state_->due = world_.clock.steady_now() + time_of(state_->call);
    world_.soon.emplace_back([state = state_, find = find_, &world = world_] {
      if (state->call.origin->depth > extensions::kMaxCallDepth) {
        state->end = Result<std::string>(
            Error{Errc::kLimitExceeded, "more than 16 calls between agents wait for each other"});
      } else if (StoredAgent* const callee = find(state->call); waits_for(callee, state->call)) {
        state->end = Result<std::string>(
            Error{Errc::kConflict, "agent " + callee->key().agent_class + " \"" +
                                       callee->key().name + "\" waits for this call"});
      } else if (callee != nullptr) {
        deliver_call(world, *callee, state);
      } else {
        state->end = Result<std::string>(Error{
            Errc::kNotFound,
            "this test has no agent " + state->call.agent_class + " \"" + state->call.name + "\""});
      }
      state->tell();
    });
  }
  void credit(std::uint64_t bytes) override {
    state_->credit += std::min(bytes, std::numeric_limits<std::uint64_t>::max() - state_->credit);
    world_.soon.emplace_back([state = state_] { state->tell(); });
  }

 private:
  World& world_;
  const MockRouter::Find find_;
  const MockCallPtr state_;
};

}  // namespace

std::unique_ptr<extensions::RemoteOperation> MockRouter::call(extensions::AgentCall call) {
  auto state = std::make_shared<MockCallState>();
  state->credit = call.window;
  state->call = std::move(call);
  std::erase_if(calls_, [](const auto& each) { return each.expired(); });
  calls_.push_back(state);
  return std::make_unique<MockCall>(world_, find_, std::move(state));
}

// Also ends the event of the callee, as a timeout.
bool MockRouter::step() {
  const SteadyTime now = world_.clock.steady_now();
  for (const std::weak_ptr<MockCallState>& each : calls_) {
    const MockCallPtr state = each.lock();
    if (!state || state->listener == nullptr || state->end || state->due > now) continue;
    state->end = Result<std::string>(Error{Errc::kTimeout, "the agent did not answer in time"});
    if (state->callee != nullptr && !state->its_call->done && state->its_call->id != 0) {
      if (LiveInstance* const live = state->callee->live()) live->abandon(state->its_call->id);
    }
    state->tell();
    return true;
  }
  return false;
}

std::optional<SteadyTime> MockRouter::next_due() const {
  std::optional<SteadyTime> next;
  for (const std::weak_ptr<MockCallState>& each : calls_) {
    const MockCallPtr state = each.lock();
    if (!state || state->listener == nullptr || state->end) continue;
    if (!next || state->due < *next) next = state->due;
  }
  return next;
}

}  // namespace hearth::mock
