// A task that is never awaited: its code has not run, and the test that made it fails.
#include "one_agent.hpp"

#include <hearth/agent.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

namespace unawaited_tests {
namespace {

using hearth::FiberContext;
using hearth::Task;
using hearth::testing::Host;
using std::chrono::milliseconds;

class Forgetful : public hearth::Agent {
 public:
  static void methods(hearth::Methods<Forgetful>& m) {
    m.add("drops", &Forgetful::drops);
    m.add("drops_a_fiber", &Forgetful::drops_a_fiber);
    m.add("drops_late", &Forgetful::drops_late);
    m.add("awaits_late", &Forgetful::awaits_late);
    m.add("throws_between", &Forgetful::throws_between);
    m.add("moves", &Forgetful::moves);
    m.add("holds", &Forgetful::holds);
    m.add("keeps", &Forgetful::keeps);
    m.add("awaits_what_it_keeps", &Forgetful::awaits_what_it_keeps);
  }
  Task<int> answer() { co_return 42; }

  void drops() { static_cast<void>(answer()); }
  void drops_a_fiber() {
    static_cast<void>(run_fiber("work", [](FiberContext&) {}));
  }
  Task<void> drops_late() {
    auto never = answer();
    co_await sleep(milliseconds(1));
  }
  Task<int> awaits_late() {
    auto later = answer();
    co_await sleep(milliseconds(1));
    co_return co_await std::move(later);
  }
  Task<int> throws_between() {
    auto never = answer();
    co_await sleep(milliseconds(1));
    throw std::runtime_error("something else");
  }
  Task<int> moves() {
    auto first = answer();
    auto second = std::move(first);
    co_return co_await std::move(second);
  }
  void keeps() { kept_.emplace(answer()); }
  Task<int> awaits_what_it_keeps() {
    auto kept = std::move(*kept_);
    kept_.reset();
    co_return co_await std::move(kept);
  }
  Task<int> holds() {
    auto later = answer();
    co_await sleep(std::chrono::hours(1));
    co_return co_await std::move(later);
  }

 private:
  std::optional<Task<int>> kept_;
};

// It forgets before its first event.
class BornForgetful : public Forgetful {
 public:
  static void methods(hearth::Methods<BornForgetful>& /*m*/) {}
  BornForgetful() { drops(); }
};
class FirstForgetful : public Forgetful {
 public:
  static void methods(hearth::Methods<FirstForgetful>& /*m*/) {}
  hearth::Json initial_state() override {
    drops();
    return 1;
  }
};

constexpr const char* kMisuse =
    "misuse: a Task was made and never awaited, so its code has not run: co_await it, or give the "
    "work to start_fiber()";

class UnawaitedTest : public OneAgent<Forgetful> {
 protected:
  // The message of the failed test.
  template <class Function>
  std::string failure(Function function) {
    try {
      function();
      return "";
    } catch (const std::logic_error& error) {
      return error.what();
    }
  }
};

TEST_F(UnawaitedTest, FailsTheTestAtOnceAndIsInTheLog) {
  for (const char* const method : {"drops", "drops_a_fiber"})
    EXPECT_EQ(failure([&] { agent_.call(method); }), kMisuse) << method;
  EXPECT_EQ(host_.log().back(), std::string("error ") + kMisuse);
  EXPECT_TRUE(agent_.fibers().empty()) << "nothing was begun";
}

TEST_F(UnawaitedTest, FailsTheTestAlsoInAConstructorAndInTheInitialState) {
  EXPECT_EQ(failure([&] { host_.create<BornForgetful>("b").wake(); }), kMisuse);
  EXPECT_EQ(failure([&] { host_.create<FirstForgetful>("f").wake(); }), kMisuse);
}

TEST_F(UnawaitedTest, FailsTheTestAlsoAfterAWait) {
  auto call = agent_.start("drops_late");
  EXPECT_EQ(failure([&] { host_.advance(milliseconds(1)); }), kMisuse);
}

TEST_F(UnawaitedTest, FailsTheTestAlsoWhenTheAgentGoesWithWhatItHasKept) {
  agent_.call("keeps");
  EXPECT_EQ(failure([&] { agent_.evict(); }), kMisuse);
  EXPECT_EQ(host_.log().back(), std::string("error ") + kMisuse);
  agent_.call("keeps");
  EXPECT_EQ(agent_.call("awaits_what_it_keeps"), 42);
  EXPECT_EQ(failure([&] { agent_.evict(); }), "");
}

TEST(UnawaitedDeathTest, EndsTheProcessIfTheTestHasEndedByThen) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        Host host;
        host.create<Forgetful>("a").call("keeps");
      },
      "misuse: a Task was made and never awaited");
}

TEST_F(UnawaitedTest, WhatIsAwaitedLateOrMovedIsNone) {
  auto call = agent_.start("awaits_late");
  host_.advance(milliseconds(1));
  EXPECT_EQ(call.value(), 42);
  EXPECT_EQ(agent_.call("moves"), 42);
  EXPECT_TRUE(host_.log().empty());
}

TEST_F(UnawaitedTest, WhatAnExceptionACancelOrAnEvictionCutsOffIsNone) {
  auto throws = agent_.start("throws_between");
  host_.advance(milliseconds(1));
  EXPECT_EQ(throws.error(), "something else");
  auto cancelled = agent_.start("holds");
  cancelled.cancel();
  auto evicted = agent_.start("holds");
  agent_.evict();
  for (const std::string& line : host_.log()) EXPECT_EQ(line.find("misuse"), std::string::npos);
}

}  // namespace
}  // namespace unawaited_tests
