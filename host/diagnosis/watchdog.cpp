#include "diagnosis/watchdog.hpp"

#include "diagnosis/code_symbols.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace hearth::diagnosis {

using std::chrono::milliseconds;

SlowCalls::SlowCalls(HangLimits limits, Logger& logger, Metrics& metrics, GiveUp give_up,
                     StackOf stack_of)
    : limits_(limits),
      logger_(logger),
      metrics_(metrics),
      give_up_(std::move(give_up)),
      stack_of_(std::move(stack_of)) {}

void SlowCalls::look(std::chrono::nanoseconds now) {
  const auto step = std::clamp<std::chrono::nanoseconds>(now - std::exchange(last_look_, now),
                                                         milliseconds(0), kMaxStep);
  std::vector<Seen> still;
  for_each_call([&](const RunningCall& call) {
    if (call.call == "offload") return;
    const auto before = std::ranges::find_if(seen_, [&call](const Seen& each) {
      return each.thread == call.thread && each.number == call.number;
    });
    Seen& seen = still.emplace_back(
        Seen{.thread = call.thread, .number = call.number, .time = {}, .is_told = false});
    if (before == seen_.end()) return;  // it has just begun
    seen = *before;
    seen.time += step;
    judge(call, seen);
  });
  seen_ = std::move(still);
}

void SlowCalls::judge(const RunningCall& call, Seen& seen) {
  if (limits_.soft.count() != 0 && seen.time >= limits_.soft && !seen.is_told) {
    seen.is_told = true;
    counter(call.owner->agent_class).add();
    tell(call, seen);
  }
  if (limits_.hard.count() != 0 && seen.time >= limits_.hard) give_up_(call, stack_text_of(call));
}

void SlowCalls::tell(const RunningCall& call, const Seen& seen) {
  TraceText buffer{};
  const std::string_view trace = write_trace(call.event, buffer);
  const std::string stack = stack_text_of(call);
  std::vector<LogField> fields = {
      {"class", call.owner->agent_class},
      {"agent", call.agent()},
      {"event_kind", call.call},
      {"method", call.method()},
      {"library", call.owner->library},
      {"running_ms", std::chrono::floor<milliseconds>(seen.time).count()},
      {"stack", stack}};
  if (call.event.number != 0) fields.push_back({"call", call.event.number});
  if (!trace.empty()) fields.push_back({"trace", trace});
  logger_.write(LogLevel::kWarn, "agent.call_slow", fields);
}

std::string SlowCalls::stack_text_of(const RunningCall& call) const {
  return stack_of_ ? stack_of_(call) : std::string();
}

Counter& SlowCalls::counter(const std::string& agent_class) {
  Counter*& found = counters_[agent_class];
  if (found == nullptr) {
    found = &metrics_.counter("hearth_slow_calls_total",
                              "Calls into a class that took longer than limits.soft_hang.",
                              {{"class", agent_class}});
  }
  return *found;
}

Watchdog::Watchdog(HangLimits limits, Logger& logger, Metrics& metrics, SlowCalls::GiveUp give_up)
    : calls_(limits, logger, metrics, std::move(give_up),
             [this](const RunningCall& call) { return stack_of(call); }),
      thread_([this] { watch(); }) {}

Watchdog::~Watchdog() {
  {
    const MutexLock lock(mutex_);
    is_over_ = true;
  }
  over_.notify_one();
  thread_.join();
}

std::string Watchdog::stack_of(const RunningCall& call) {
  return stack_text(stacks_.capture(call));
}

std::string stack_text(const std::vector<std::uintptr_t>& frames) {
  return join_stack(name_addresses(frames));
}

void Watchdog::watch() {
  const MutexLock lock(mutex_);
  while (!is_over_) {
    if (!over_.wait_for(mutex_, kPeriod)) calls_.look(call_clock());
  }
}

}  // namespace hearth::diagnosis
