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
namespace {

// What both ends share. The caller's end, and with it the listener, may go first.
struct MockCallState {
  extensions::AgentCall call;
  extensions::RemoteListener* listener = nullptr;  // null: not started, or given up
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

using MockCallPtr = std::shared_ptr<MockCallState>;

void deliver_call(StoredAgent& callee, const MockCallPtr& state) {
  Incoming event{.kind = extensions::EventKind::kCall,
                 .name = state->call.method,
                 .body = state->call.arguments};
  event.origin = state->call.origin;
  event.begun = [state] { state->began = true; };
  event.part = [state](std::string_view part) {
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
  MockCall(World& world, const MockRouter::Find& find, extensions::AgentCall call)
      : world_(world), find_(find), state_(std::make_shared<MockCallState>()) {
    state_->credit = call.window;
    state_->call = std::move(call);
  }
  ~MockCall() override { state_->listener = nullptr; }

  void start(extensions::RemoteListener& listener) override {
    state_->listener = &listener;
    world_.soon.emplace_back([state = state_, find = find_] {
      if (state->call.origin->depth > extensions::kMaxCallDepth) {
        state->end = Result<std::string>(
            Error{Errc::kLimitExceeded, "more than 16 calls between agents wait for each other"});
      } else if (StoredAgent* const callee = find(state->call)) {
        deliver_call(*callee, state);
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
  return std::make_unique<MockCall>(world_, find_, std::move(call));
}

}  // namespace hearth::mock
