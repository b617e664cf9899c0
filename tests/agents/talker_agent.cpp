// An agent with a turn that never ends by itself. Plugin "talker-agent", class Talker.
//
//   begin()   begins the turn
//   say()     broadcasts "hello", only once even after recoveries, and then "run N"
//   log       "the turn runs"

#include <hearth/agent.hpp>

#include <chrono>
#include <string>

class Talker : public hearth::Agent {
 public:
  static void methods(hearth::Methods<Talker>& m) {
    m.add("begin", &Talker::begin);
    m.add("say", &Talker::say);
    m.fiber("turn", &Talker::turn);
  }
  void begin() { static_cast<void>(start_fiber("turn", nullptr, {.turn = true})); }
  void say() {
    if (running_ == nullptr) throw hearth::Error(HEARTH_E_CONFLICT, "no turn runs");
    broadcast_once(*running_, "hello", "\"hello\"");
    broadcast("\"run " + std::to_string(run_) + "\"");
  }

 private:
  hearth::Task<void> turn(hearth::FiberContext& fiber) {
    running_ = &fiber;
    run_ = fiber.snapshot<int>().value_or(0) + 1;
    fiber.stash(run_);
    log.info("the turn runs");
    co_await sleep(std::chrono::hours(1000));
  }

  hearth::FiberContext* running_ = nullptr;  // as long as its function runs
  int run_ = 0;
};

HEARTH_PLUGIN("talker-agent", "1.0.0", Talker)
