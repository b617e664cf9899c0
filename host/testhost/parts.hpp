#pragma once
// What the agents of a test host share: time, randomness, and the log.

#include "base/clock.hpp"
#include "base/logger.hpp"
#include "base/mutex.hpp"
#include "base/random.hpp"
#include "base/turn_end.hpp"
#include "runtime/shard_loop.hpp"
#include "runtime/timer_queue.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace hearth::testhost {

// Threads  One moves it, all read it.
class MovedClock final : public Clock {
 public:
  [[nodiscard]] SteadyTime steady_now() const override {
    return SteadyTime(std::chrono::nanoseconds(steady_ns_));
  }
  [[nodiscard]] WallTime wall_now() const override {
    return WallTime(std::chrono::milliseconds(wall_ms_));
  }
  // The wall clock shows whole milliseconds.
  void advance_to(SteadyTime when);
  void set_wall(std::int64_t unix_ms) { wall_ms_ = unix_ms; }

 private:
  std::atomic<std::int64_t> steady_ns_ = std::int64_t{3600} * 1'000'000'000;
  std::atomic<std::int64_t> wall_ms_ = 1'767'312'000'000;  // 2026-01-02T00:00Z
};

// Threads  All.
class SeededRandom final : public Random {
 public:
  void fill(std::span<std::byte> out) override;
  void seed(std::uint64_t seed);

 private:
  Mutex mutex_;
  std::mt19937_64 engine_ GUARDED_BY(mutex_){1};
};

// The loop of the shard. Nothing runs by itself.
//
// Threads  The test's; post() any.
class TestLoop final : public runtime::ShardLoop {
 public:
  void post(std::function<void()> task) override;
  [[nodiscard]] TurnEnd& turn_end() override { return turn_end_; }
  [[nodiscard]] bool on_this_thread() const override {
    return std::this_thread::get_id() == thread_;
  }
  [[nodiscard]] const Clock& clock() const override { return time; }
  runtime::TimerId call_at(SteadyTime due, std::function<void()> task) override {
    return timers_.add(due, std::move(task));
  }
  void cancel_timer(runtime::TimerId timer) override { timers_.cancel(timer); }

  // Runs the first task that was posted; false: there is none.
  bool run_task();
  // Runs the timers that are due, but none that they add; false: there is none.
  bool run_timers();
  [[nodiscard]] std::optional<SteadyTime> next_due() const { return timers_.next_due(); }

  MovedClock time;

 private:
  const std::thread::id thread_ = std::this_thread::get_id();
  Mutex mutex_;
  std::deque<std::function<void()>> tasks_ GUARDED_BY(mutex_);
  TurnEnd turn_end_{[this](std::function<void()> task) { post(std::move(task)); }};
  runtime::TimerQueue timers_;
};

// The lines that agents and their libraries write, such as "info text". The runtime's own lines are
// not kept: on_line() gets them.
//
// Threads  All; lines() is for the thread of the test, and its result holds until the next lines().
class TestLog final : public Logger {
 public:
  using Logger::write;
  using OnLine = std::function<void(std::string_view event, std::span<const LogField> fields)>;

  [[nodiscard]] bool enabled(LogLevel) const override { return true; }
  [[nodiscard]] bool limits_lines() const override { return false; }
  void write(LogLevel level, std::string_view event, std::span<const LogField> fields) override;
  [[nodiscard]] const std::vector<std::string>& lines() const;
  void on_line(OnLine then) { on_line_ = std::move(then); }

 protected:
  void keep(std::string_view event, std::span<const LogField> fields) override;

 private:
  void add(std::string line);

  OnLine on_line_;
  mutable Mutex mutex_;
  std::vector<std::string> lines_ GUARDED_BY(mutex_);
  mutable std::vector<std::string> read_;  // by the last lines(); only for the test's thread
};

// The text of a field of a line; empty: it has none.
[[nodiscard]] std::string_view field(std::span<const LogField> fields, std::string_view key);

}  // namespace hearth::testhost
