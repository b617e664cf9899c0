// Which event's or fiber's work the SDK reports to the host, at each step.
#include <hearth/agent.hpp>
#include <hearth/testing/host.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace fiber_work_tests {
namespace {

using hearth::FiberContext;
using hearth::RecoveredFiber;
using hearth::Task;
using hearth::testing::AgentHandle;
using hearth::testing::Host;
using std::chrono::hours;
using std::chrono::milliseconds;
using Lines = std::vector<std::string>;

// What the host was told, and what ran: "works for fiber 1", "method".
Lines seen;  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables)

class Worker : public hearth::Agent {
 public:
  static void methods(hearth::Methods<Worker>& m) { list(m); }

  Task<void> step(std::string fiber) {
    seen.push_back(fiber);
    co_await sleep(milliseconds(10));
    seen.push_back(fiber + " after its wait");
  }
  Task<void> outer(FiberContext& /*fiber*/) {
    seen.emplace_back("outer");
    const auto inner = [this](FiberContext&) { return step("inner"); };
    co_await run_fiber("inner", inner);
    seen.emplace_back("outer again");
  }
  Task<void> plain() {
    seen.emplace_back("method");
    co_await sleep(milliseconds(10));
    seen.emplace_back("method after its wait");
  }
  Task<void> starts() {
    seen.emplace_back("method");
    start_fiber("listed");
    seen.emplace_back("method");
    co_await sleep(milliseconds(20));
    seen.emplace_back("method after its wait");
  }
  void starts_outer() { start_fiber("outer"); }
  void sleeps() {
    start_fiber("sleeper", [this](FiberContext&) -> Task<void> { co_await sleep(hours(1)); });
  }
  void later() {
    start_fiber("last", [this](FiberContext&) {
      after_turn([] { seen.emplace_back("after the turn"); });
      seen.emplace_back("last");
    });
  }

 private:
  template <class Class>
  static void list(hearth::Methods<Class>& m) {
    m.add("plain", &Worker::plain);
    m.add("starts", &Worker::starts);
    m.add("starts_outer", &Worker::starts_outer);
    m.add("sleeps", &Worker::sleeps);
    m.add("later", &Worker::later);
    m.fiber("listed", &Worker::listed);
    m.fiber("outer", &Worker::outer);
  }
  friend class Decider;
  friend class Planner;
  Task<void> listed(FiberContext& /*fiber*/) { return step("fiber"); }
};

// Has a hook of its own, which waits before it lets the fiber go on.
class Decider : public Worker {
 public:
  static void methods(hearth::Methods<Decider>& m) { list(m); }
  Task<void> on_fiber_recovered(const RecoveredFiber& fiber) override {
    seen.emplace_back("hook");
    co_await sleep(milliseconds(10));
    seen.emplace_back("hook after its wait");
    start_fiber(fiber.name);
    seen.emplace_back("hook");
  }
};

// Has a hook that plans, and waits meanwhile.
class Planner : public Worker {
 public:
  static void methods(hearth::Methods<Planner>& m) { list(m); }
  Task<hearth::RecoveryPlan> on_fibers_recovered(
      const std::vector<hearth::InterruptedFiber>& /*fibers*/) override {
    seen.emplace_back("plan");
    co_await sleep(milliseconds(10));
    seen.emplace_back("plan after its wait");
    co_return hearth::RecoveryPlan();
  }
};

// Starts.
class Starter : public hearth::Agent {
 public:
  Task<void> on_start() override {
    seen.emplace_back("start");
    return {};
  }
};

// Writes down what the SDK reports, and passes it to the host.
class FiberWorkTest : public ::testing::Test {
 protected:
  FiberWorkTest() {
    seen.clear();
    real = table_.works_for;
    table_.works_for = [](const hearth_host* host, hearth_agent agent, hearth_fiber fiber,
                          std::uint64_t call) {
      std::string whose = "none";
      if (fiber != 0) whose = "fiber " + std::to_string(fiber);
      if (call != 0) whose = "the event";
      seen.push_back("works for " + whose);
      return real(host, agent, fiber, call);
    };
    hearth::detail::library_tables.look_up(host_->table());
    hearth::detail::library_tables.fibers = &table_;
  }
  ~FiberWorkTest() override {
    host_.reset();  // its agents use the tables until they have gone
    hearth::detail::library_tables = {};
  }

  Lines after(milliseconds time) {
    host_->advance(time);
    return std::exchange(seen, {});
  }

  // Recovers a fiber of an agent: all that is seen at its wake, and the first lines 10 ms later.
  template <class Class>
  void expect_recovery(const Lines& at_wake, const Lines& later) {
    AgentHandle agent = host_->create<Class>("a");
    auto call = agent.start("starts");
    agent.kill();
    seen.clear();
    agent.wake();
    EXPECT_EQ(std::exchange(seen, {}), at_wake);
    host_->advance(milliseconds(10));
    ASSERT_GE(seen.size(), later.size());
    seen.resize(later.size());
    EXPECT_EQ(seen, later);
  }

  static inline decltype(hearth_fibers_v1::works_for) real = nullptr;  // NOLINT
  std::unique_ptr<Host> host_ = std::make_unique<Host>();
  hearth_fibers_v1 table_ = *static_cast<const hearth_fibers_v1*>(
      host_->table()->get_extension(host_->table(), HEARTH_EXT_FIBERS));
};

TEST_F(FiberWorkTest, AnAgentThatHasNoFibersTellsItOnce) {
  AgentHandle agent = host_->create<Worker>("a");
  EXPECT_EQ(std::exchange(seen, {}), Lines({"works for none"})) << "before its first hook";
  auto call = agent.start("plain");
  EXPECT_EQ(after(milliseconds(20)), Lines({"method", "method after its wait"}));
}

TEST_F(FiberWorkTest, AMethodThatStartsAFiberAndWaitsIsToldFromTheFiber) {
  AgentHandle agent = host_->create<Worker>("a");
  seen.clear();
  auto call = agent.start("starts");
  EXPECT_EQ(std::exchange(seen, {}),
            Lines({"method", "works for fiber 1", "fiber", "works for the event", "method"}));
  // The fiber's step, and then the method's, which begins as that.
  EXPECT_EQ(after(milliseconds(20)),
            Lines({"works for fiber 1", "fiber after its wait", "method after its wait"}));
}

TEST_F(FiberWorkTest, AFiberThatSleepsBesideAMethodIsNotToldAgain) {
  AgentHandle agent = host_->create<Worker>("a");
  agent.call("sleeps");
  seen.clear();
  auto call = agent.start("plain");
  EXPECT_EQ(after(milliseconds(20)), Lines({"method", "method after its wait"}));
}

TEST_F(FiberWorkTest, ANestedFiberIsToldFromTheOneThatWaitsForIt) {
  AgentHandle agent = host_->create<Worker>("a");
  seen.clear();
  agent.call("starts_outer");
  EXPECT_EQ(std::exchange(seen, {}), Lines({"works for fiber 1", "outer", "works for fiber 2",
                                            "inner", "works for fiber 1", "works for the event"}));
  EXPECT_EQ(after(milliseconds(20)),
            Lines({"works for fiber 2", "inner after its wait", "works for fiber 1", "outer again",
                   "works for none", "works for fiber 1"}))
      << "the end of a fiber is its own work too";
}

TEST_F(FiberWorkTest, WhatAFiberLeavesForAfterTheTurnIsNoFibersWork) {
  AgentHandle agent = host_->create<Worker>("a");
  seen.clear();
  agent.call("later");
  EXPECT_EQ(after(milliseconds(1)),
            Lines({"works for fiber 1", "works for the event", "works for fiber 1", "last",
                   "works for the event", "after the turn"}));
}

TEST_F(FiberWorkTest, ARecoveryByNameIsToldAsTheFiberAndTheEventBeginsAsThat) {
  AgentHandle agent = host_->create<Worker>("a");
  agent.call("starts_outer");
  agent.kill();
  seen.clear();
  agent.wake();
  EXPECT_EQ(Lines(seen.begin(), seen.begin() + 3),
            Lines({"works for none", "works for fiber 1", "outer"}));
}

TEST_F(FiberWorkTest, AHookWorksForTheFiberThatItIsAbout) {
  expect_recovery<Decider>({"works for none", "hook"}, {"hook after its wait", "works for fiber 1",
                                                        "fiber", "works for the event", "hook"});
}

TEST_F(FiberWorkTest, APlanWorksForTheFibersThatItIsAbout) {
  expect_recovery<Planner>({"works for none", "plan"}, {"plan after its wait"});
}

TEST_F(FiberWorkTest, AStartIsNoFibersWork) {
  [[maybe_unused]] const AgentHandle agent = host_->create<Starter>("a");
  EXPECT_EQ(seen, Lines({"works for none", "start"}));
}

}  // namespace
}  // namespace fiber_work_tests
