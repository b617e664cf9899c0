// Its constructor and its request handler make a Task each and never await it.
#include <hearth/agent.hpp>

class DropsATask : public hearth::Agent {
 public:
  DropsATask() { static_cast<void>(work()); }
  hearth::Task<hearth::Response> on_request(const hearth::Request& /*request*/) override {
    static_cast<void>(work());
    return hearth::Response::text("done");
  }

 private:
  static hearth::Task<void> work() { co_return; }
};

HEARTH_PLUGIN("drops-a-task", "1.0.0", DropsATask)
