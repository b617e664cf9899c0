// An agent that only takes steps, for measuring. Plugin "steps-agent", class StepsAgent.
//
//   methods   walk(n): a fiber of n steps, each a checkpoint and a sleep of 0 ms; answers when it
//             is over

#include <hearth/agent.hpp>

#include <chrono>

class StepsAgent : public hearth::Agent {
 public:
  static void methods(hearth::Methods<StepsAgent>& m) { m.add("walk", &StepsAgent::walk); }

  hearth::Task<int> walk(int steps) {
    auto work = [this, steps](hearth::FiberContext& fiber) { return take(fiber, steps); };
    co_return co_await run_fiber("walk", work);
  }

 private:
  hearth::Task<int> take(hearth::FiberContext& fiber, int steps) {
    for (int done = 1; done <= steps; ++done) {
      fiber.stash({{"done", done}, {"of", steps}});
      co_await sleep(std::chrono::milliseconds(0));
    }
    co_return steps;
  }
};

HEARTH_PLUGIN("steps-agent", "1.0.0", StepsAgent)
