// An agent with a turn that never ends by itself, and with tales to tell. Plugin "talker-agent",
// class Talker.
//
//   begin()      begins the turn
//   say()        broadcasts "hello", only once even after recoveries, and then "run N"
//   tell(n, ms)  logs "tale 1" to "tale N", one every MS milliseconds
//   log          "the turn runs"

#include <hearth/agent.hpp>

#include <chrono>
#include <string>

class Talker : public hearth::Agent {
 public:
  static void methods(hearth::Methods<Talker>& m) {
    m.add("begin", &Talker::begin);
    m.add("say", &Talker::say);
    m.add("tell", &Talker::tell);
    m.fiber("turn", &Talker::turn);
  }
  void begin() { static_cast<void>(start_fiber("turn", nullptr, {.turn = true})); }
  void say() {
    if (running_ == nullptr) throw hearth::Error(HEARTH_E_CONFLICT, "no turn runs");
    broadcast_once(*running_, "hello", "\"hello\"");
    broadcast("\"run " + std::to_string(run_) + "\"");
  }
  // A line that is late does not make the next ones late.
  hearth::Task<void> tell(int tales, int ms) {
    const auto begun = std::chrono::steady_clock::now();
    for (int number = 1; number <= tales; ++number) {
      const auto early =
          begun + std::chrono::milliseconds(number * ms) - std::chrono::steady_clock::now();
      if (early.count() > 0)
        co_await sleep(std::chrono::duration_cast<std::chrono::milliseconds>(early));
      log.info("tale ", number);
    }
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
