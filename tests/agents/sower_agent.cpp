// An agent whose start makes durable work of each kind of schedule, as correct libraries do.
#include <hearth/agent.hpp>

#include <chrono>

class SowerAgent : public hearth::Agent {
 public:
  static void methods(hearth::Methods<SowerAgent>& m) {
    m.callback("sow", &SowerAgent::sow);
    m.callback("report", &SowerAgent::report);
  }
  hearth::Task<void> on_start() override {
    schedule(hearth::Cron("0 7 * * *", "Europe/Berlin"), "report");
    schedule(std::chrono::hours(6), "sow", "beans");
    return {};
  }
  void sow(hearth::Json) {}
  void report() {}
};

HEARTH_PLUGIN("sower", "1.0.0", SowerAgent)
