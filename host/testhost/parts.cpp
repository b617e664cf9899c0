#include "testhost/parts.hpp"

#include "base/log_line.hpp"

#include <variant>

namespace hearth::testhost {
namespace {

std::int64_t whole_ms(std::int64_t ns) {
  return ns / 1'000'000;
}

}  // namespace

void MovedClock::advance_to(SteadyTime when) {
  const std::int64_t ns = when.time_since_epoch().count();
  if (ns <= steady_ns_) return;
  wall_ms_ += whole_ms(ns) - whole_ms(steady_ns_);
  steady_ns_ = ns;
}

void SeededRandom::fill(std::span<std::byte> out) {
  const MutexLock lock(mutex_);
  for (std::byte& each : out) each = static_cast<std::byte>(engine_());
}

void SeededRandom::seed(std::uint64_t seed) {
  const MutexLock lock(mutex_);
  engine_.seed(seed);
}

// ---- loop ---------------------------------------------------------------------------------------

void TestLoop::post(std::function<void()> task) {
  const MutexLock lock(mutex_);
  tasks_.push_back(std::move(task));
}

bool TestLoop::run_task() {
  std::function<void()> task;
  {
    const MutexLock lock(mutex_);
    if (tasks_.empty()) return false;
    task = std::move(tasks_.front());
    tasks_.pop_front();
  }
  task();
  return true;
}

bool TestLoop::run_timers() {
  const runtime::TimerId newest = timers_.last();
  bool has_run = false;
  while (const auto task = timers_.take_due(time.steady_now(), newest)) {
    task();
    has_run = true;
  }
  return has_run;
}

// ---- log ----------------------------------------------------------------------------------------

std::string_view field(std::span<const LogField> fields, std::string_view key) {
  for (const LogField& each : fields) {
    const auto* const text = std::get_if<std::string_view>(&each.value);
    if (each.key == key && text != nullptr) return *text;
  }
  return {};
}

void TestLog::add(std::string line) {
  const MutexLock lock(mutex_);
  lines_.push_back(std::move(line));
}

// Of a library outside of its agents: plugin.log.
void TestLog::write(LogLevel level, std::string_view event, std::span<const LogField> fields) {
  if (event == "agent.log" || event == "plugin.log")
    add(std::string(to_string(level)) + " " + std::string(field(fields, "text")));
  if (on_line_ && event != "plugin.log") on_line_(event, fields);
}

void TestLog::keep(std::string_view event, std::span<const LogField> fields) {
  if (event != "agent.audit") return;
  const std::string_view detail = field(fields, "detail");
  add("info audit " + std::string(field(fields, "what")) +
      (detail.empty() ? "" : " " + std::string(detail)));
}

const std::vector<std::string>& TestLog::lines() const {
  const MutexLock lock(mutex_);
  read_ = lines_;
  return read_;
}

}  // namespace hearth::testhost
