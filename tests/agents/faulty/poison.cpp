// Durable work of every kind that crashes the process. Plugin and class Poison.
//
//   give(kind, callback)   gives itself, or the agent "victim", such work: kind "item", "schedule",
//                          "notification", "alarm", or "report" of a fiber (without a callback)
//   now, later             the callbacks: a null pointer, at once or after the first wait
//   hello                  1
#include <hearth/agent.hpp>

#include <chrono>
#include <string>

namespace {
int* volatile nothing_there = nullptr;
}

// A sanitizer would stop before the fault that this code makes.
#define HEARTH_FAULTY __attribute__((no_sanitize("undefined")))

class Poison : public hearth::Agent {
 public:
  static void methods(hearth::Methods<Poison>& m) {
    m.add("give", &Poison::give);
    m.add("hello", &Poison::hello);
    m.add("now", &Poison::now);
    m.add("later", &Poison::later);
    m.callback("now", &Poison::now);
    m.callback("later", &Poison::later);
    m.fiber("quick", &Poison::quick);
  }

  void give(const std::string& kind, const std::string& callback) {
    if (kind == "item") queue(callback);
    if (kind == "schedule") schedule(std::chrono::milliseconds(10), callback);
    if (kind == "notification") agent("Poison", "victim").notify(callback);
    if (kind == "alarm") set_alarm(std::chrono::milliseconds(10), callback);
    if (kind == "report") start_fiber("quick", nullptr, {.keep_record = true});
  }
  int hello() { return 1; }
  HEARTH_FAULTY void now() { *nothing_there = 1; }
  HEARTH_FAULTY hearth::Task<void> later() {
    co_await sleep(std::chrono::milliseconds(1));
    *nothing_there = 1;
  }
  hearth::Task<void> quick(hearth::FiberContext&) { return {}; }
  HEARTH_FAULTY hearth::Task<void> on_fiber_complete(const hearth::FiberRecord&) override {
    *nothing_there = 1;
    return {};
  }
};

HEARTH_PLUGIN("poison", "1.0.0", Poison)
