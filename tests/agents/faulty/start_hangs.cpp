// START is accepted and never completed.
#include <hearth/agent.hpp>

#include <coroutine>

class StartHangs : public hearth::Agent {
 public:
  hearth::Task<void> on_start() override { co_await std::suspend_always(); }
};

HEARTH_PLUGIN("start-hangs", "1.0.0", StartHangs)
