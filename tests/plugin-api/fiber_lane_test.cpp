// Fibers of one lane on the mock host.

#include <hearth/testing/host.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

namespace fiber_lane_tests {
namespace {

using hearth::FiberContext;
using hearth::FiberOptions;
using hearth::Task;
using hearth::testing::Host;
using std::chrono::minutes;
using std::chrono::seconds;
using Lines = std::vector<std::string>;

Lines done;  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables): outlives an instance

class Line : public hearth::Agent {
 public:
  static void methods(hearth::Methods<Line>& m) {
    m.add("begin", &Line::begin);
    m.add("begin_given", &Line::begin_given);
    m.add("wait", &Line::wait);
    m.fiber("work", &Line::work);
  }
  Task<std::string> work(std::string name, FiberContext& /*fiber*/) {
    done.push_back("begin " + name);
    co_await sleep(seconds(1));
    done.push_back("end " + name);
    co_return name;
  }
  std::string begin(std::string name) {
    const auto started = start_fiber("work", name, {.lane = "x"});
    if (!started.accepted) done.push_back("not accepted");
    return started.id();
  }
  void begin_given(std::string name) {
    const auto given = [this, name](FiberContext& fiber) { return work(name, fiber); };
    start_fiber("given", given, {.lane = "x"});
  }
  // The value of a fiber whose lane is taken.
  Task<std::string> wait(std::string name) {
    FiberOptions options{.lane = "x"};
    co_return co_await run_fiber<std::string>("work", std::move(name), std::move(options));
  }
};

// Decides about interrupted fibers itself.
class DecidingLine : public Line {
 public:
  Task<void> on_fiber_recovered(const hearth::RecoveredFiber& fiber) override {
    done.push_back("asked: " + fiber.reason);
    continue_fiber(fiber);
    co_return;
  }
};

class FiberLaneTest : public ::testing::Test {
 protected:
  FiberLaneTest() { done.clear(); }
  Host host_;
};

template <class Agent>
class FiberLaneOfTest : public FiberLaneTest {};
using Classes = ::testing::Types<Line, DecidingLine>;
TYPED_TEST_SUITE(FiberLaneOfTest, Classes);

TYPED_TEST(FiberLaneOfTest, FibersOfALaneRunOneAfterTheOther) {
  auto agent = this->host_.template create<TypeParam>("a");
  agent.call("begin", "1");
  agent.call("begin", "2");
  agent.call("begin_given", "3");
  const auto waiting = agent.start("wait", "4");
  EXPECT_EQ(done, Lines({"begin 1"}));
  this->host_.advance(minutes(1));
  EXPECT_EQ(done, Lines({"begin 1", "end 1", "begin 2", "end 2", "begin 3", "end 3", "begin 4",
                         "end 4"}));
  EXPECT_EQ(waiting.value(), "4");
  EXPECT_TRUE(agent.fibers().empty());
}

TYPED_TEST(FiberLaneOfTest, TheOrderSurvivesAKill) {
  auto agent = this->host_.template create<TypeParam>("a");
  for (const char* const name : {"1", "2", "3"}) agent.call("begin", name);
  agent.kill();
  this->host_.advance(seconds(1));
  agent.wake();
  this->host_.advance(minutes(1));
  std::erase(done, "asked: interrupted");
  EXPECT_EQ(done, Lines({"begin 1", "begin 1", "end 1", "begin 2", "end 2", "begin 3", "end 3"}))
      << "and no hook is asked about a fiber that begins";
}

}  // namespace
}  // namespace fiber_lane_tests
