#include "runtime/wake_keeper.hpp"

#include "base/error.hpp"
#include "base/stop_point.hpp"

#include <string_view>

namespace hearth::runtime {

bool WakeKeeper::before_commit(const durable::Wake& wake) {
  if (!is_late_for(wake)) return false;
  tell(durable::either(wake, known_));
  return true;
}

void WakeKeeper::after_commit(const durable::Wake& wake) {
  if (wake == known_) return;
  stop_point("commit.index_late");
  try {
    tell(wake);
  } catch (const StorageError& failure) {  // the commit stands; a wake without need is harmless
    logger_.write_limited(LogLevel::kWarn, "agent.wake_not_cleared", {key_.agent_class},
                          {{"class", key_.agent_class},
                           {"agent", key_.name},
                           {"error", std::string_view(failure.what())}});
  }
}

void WakeKeeper::at_end(const durable::Wake& rest) {
  durable::Wake wake = known_;
  wake.unknown_operations = rest.unknown_operations;
  // Work in progress may be due already, at the time that the index knows.
  if (!rest.working) wake.at_ms = rest.at_ms;
  after_commit(wake);
}

void WakeKeeper::keep(const durable::Wake& wake) {
  if (wake != known_) tell(wake);
}

void WakeKeeper::tell(const durable::Wake& wake) {
  alarms_.set_wake(key_, wake);
  known_ = wake;
}

}  // namespace hearth::runtime
