// An agent that only takes steps, for measuring. Plugin "steps-agent", class StepsAgent.
//
//   methods   walk(n): a fiber of n steps, each a checkpoint and a sleep of 0 ms; answers when it
//             is over
//             operate(n): a fiber of n operations that do nothing; answers when it is over
//             rest(): begins a fiber that takes a step, adds a byte to the file "running" in the
//             server's folder, and sleeps. Recovered, it does so again

#include <hearth/agent.hpp>

#include <chrono>
#include <fstream>
#include <utility>

class StepsAgent : public hearth::Agent {
 public:
  static void methods(hearth::Methods<StepsAgent>& m) {
    m.add("walk", &StepsAgent::walk);
    m.add("operate", &StepsAgent::operate);
    m.add("rest", &StepsAgent::rest);
    m.fiber("resting", &StepsAgent::sleep_long);
    m.operation("nothing", {.effect = hearth::Effect::kUnsafe,
                            .same = "its number",
                            .interrupted = "nothing",
                            .upstream = "there is none",
                            .unknown = "nothing"});
  }

  hearth::Task<int> walk(int steps) {
    auto work = [this, steps](hearth::FiberContext& fiber) { return take(fiber, steps); };
    co_return co_await run_fiber("walk", work);
  }
  hearth::Task<int> operate(int count) {
    auto work = [this, count](hearth::FiberContext& fiber) { return act(fiber, count); };
    co_return co_await run_fiber("operate", work);
  }
  int rest() {
    start_fiber("resting");
    return 1;
  }

 private:
  hearth::Task<void> sleep_long(hearth::FiberContext& fiber) {
    fiber.stash({{"since", std::chrono::system_clock::now().time_since_epoch().count()}});
    std::ofstream("running", std::ios::app) << '.';
    co_await sleep(std::chrono::hours(1));
  }
  hearth::Task<int> take(hearth::FiberContext& fiber, int steps) {
    for (int done = 1; done <= steps; ++done) {
      fiber.stash({{"done", done}, {"of", steps}});
      co_await sleep(std::chrono::milliseconds(0));
    }
    co_return steps;
  }
  hearth::Task<int> act(hearth::FiberContext&, int count) {
    const auto nothing = [](hearth::OperationAttempt attempt) { return attempt.attempt; };
    for (int done = 1; done <= count; ++done) {
      hearth::OperationCall call{.kind = "nothing", .args = done};
      co_await operation(std::move(call), nothing);
    }
    co_return count;
  }
};

HEARTH_PLUGIN("steps-agent", "1.0.0", StepsAgent)
