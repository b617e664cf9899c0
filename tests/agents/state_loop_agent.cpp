// An agent that never comes to rest: its handler of a changed state changes the state. Plugin
// "state-loop", class StateLoop.
//
//   state     {"n", "waits"}: the handler sets it again with n + 1, for ever. If `waits` is true,
//             it waits for 0 ms before that
//   methods   begin(waits): sets {"n": 0, "waits": waits}; n() -> the n of the state
#include <hearth/agent.hpp>

#include <chrono>
#include <optional>

class StateLoop : public hearth::Agent {
 public:
  static void methods(hearth::Methods<StateLoop>& m) {
    m.add("begin", &StateLoop::begin);
    m.add("n", &StateLoop::n);
  }

  hearth::Task<void> on_state_changed(hearth::Json next,
                                      std::optional<hearth::Connection> /*source*/) override {
    if (next.at("waits").get<bool>()) co_await sleep(std::chrono::milliseconds(0));
    next["n"] = next.at("n").get<int>() + 1;
    set_state(next);
  }

  void begin(bool waits) { set_state({{"n", 0}, {"waits", waits}}); }
  int n() { return state().at("n").get<int>(); }
};

HEARTH_PLUGIN("state-loop", "1.0.0", StateLoop)
