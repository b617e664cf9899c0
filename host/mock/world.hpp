#pragma once
// The parts that the agents of one mock host share: time, randomness, the log, and the next steps.

#include "base/clock.hpp"
#include "base/logger.hpp"
#include "base/mutex.hpp"
#include "base/random.hpp"
#include "extensions/agent_context.hpp"
#include "mock/http_replies.hpp"

#include <hearth/abi.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::mock {

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

// The lines that agents and their libraries write, such as "info text". The host itself writes
// none.
// Threads  All; lines() is for the thread of the test, and its result holds until the next lines().
class Lines final : public Logger {
 public:
  using Logger::write;
  [[nodiscard]] bool enabled(LogLevel) const override { return true; }
  void write(LogLevel level, std::string_view event, std::span<const LogField> fields) override;
  void add(LogLevel level, std::string_view text);
  [[nodiscard]] const std::vector<std::string>& lines() const {
    const MutexLock lock(mutex_);
    read_ = lines_;
    return read_;
  }

 private:
  mutable Mutex mutex_;
  std::vector<std::string> lines_ GUARDED_BY(mutex_);
  mutable std::vector<std::string> read_;  // by the last lines(); only for the test's thread
};

class LiveInstance;
class MockSubAgents;
class StoredAgent;

// Finds instances by their handles.
class Instances {
 public:
  Instances() = default;
  virtual ~Instances() = default;
  Instances(const Instances&) = delete;
  Instances& operator=(const Instances&) = delete;

  [[nodiscard]] virtual extensions::AgentHandle next_handle() = 0;
  virtual void add(LiveInstance& instance) = 0;
  virtual void remove(const LiveInstance& instance) = 0;
  // Null if the instance has gone.
  [[nodiscard]] virtual LiveInstance* find_instance(extensions::AgentHandle handle) = 0;
};

// Lifetime  The instances outlive it.
struct World {
  explicit World(Instances& all) : instances(all) {}

  Instances& instances;
  MovedClock clock;
  SeededRandom random;
  Lines log;
  HttpReplies http{clock};
  const hearth_host* table = nullptr;  // the table that libraries get
  extensions::AgentRouter* agents = nullptr;
  MockSubAgents* sub_agents = nullptr;
  // The agent of this key; made if it does not exist.
  std::function<StoredAgent&(const hearth_class&, storage::AgentKey, std::string options)> agent_of;
  std::string misuse;  // misuse of the SDK by the code of an agent that has left: the test fails
  std::deque<std::function<void()>> soon;  // steps that wait until no code of an agent runs
  // settle() takes all steps that are due in all agents; advance() first moves the clocks. Not from
  // inside an agent.
  std::function<void()> settle;
  std::function<void(std::chrono::nanoseconds)> advance;
  bool hold_offload = false;
};

}  // namespace hearth::mock
