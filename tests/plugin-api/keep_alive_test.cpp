// keep_alive() and keep_alive_while() on the mock host.

#include "one_agent.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

using std::chrono::milliseconds;

namespace {

using hearth::KeepAlive;
using hearth::Task;

class Sleeper : public hearth::Agent {
 public:
  static void methods(hearth::Methods<Sleeper>& m) {
    m.add("hold", &Sleeper::hold);
    m.add("let_go", &Sleeper::let_go);
    m.add("let_go_twice", &Sleeper::let_go_twice);
    m.add("moved_about", &Sleeper::moved_about);
    m.add("scoped", &Sleeper::scoped);
    m.add("scoped_plain", &Sleeper::scoped_plain);
    m.add("scoped_failing", &Sleeper::scoped_failing);
  }

  void hold() { held_.push_back(keep_alive()); }
  void let_go() { held_.pop_back(); }
  bool let_go_twice() {
    held_.back().release();
    held_.back().release();
    return static_cast<bool>(held_.back());
  }
  void moved_about() {
    KeepAlive one = keep_alive();
    KeepAlive two = std::move(one);
    one = keep_alive();
    one = std::move(two);  // gives up what it held
    held_.push_back(std::move(one));
  }
  Task<std::string> scoped() {
    auto work = [this] { return slow(); };
    co_return co_await keep_alive_while(work);
  }
  Task<int> scoped_plain() {
    auto work = [] { return 7; };
    co_return co_await keep_alive_while(work);
  }
  Task<void> scoped_failing() {
    auto work = [this]() -> Task<void> {
      co_await sleep(milliseconds(1));
      throw std::runtime_error("broken");
    };
    co_await keep_alive_while(work);
  }

 private:
  Task<std::string> slow() {
    co_await sleep(milliseconds(10));
    co_return "slept";
  }

  std::vector<KeepAlive> held_;
};

class KeepAliveTest : public OneAgent<Sleeper> {};

TEST_F(KeepAliveTest, EachReferenceCountsOneAndLeavesNoRow) {
  agent_.call("hold");
  EXPECT_EQ(agent_.keep_alive(), 1U);
  agent_.call("hold");
  EXPECT_EQ(agent_.keep_alive(), 2U);
  EXPECT_TRUE(agent_.fibers().empty());
  agent_.call("let_go");
  EXPECT_EQ(agent_.keep_alive(), 1U);
  agent_.call("let_go");
  EXPECT_EQ(agent_.keep_alive(), 0U);
}

TEST_F(KeepAliveTest, ReleasingTwiceGivesUpOneReference) {
  agent_.call("hold");
  agent_.call("hold");
  EXPECT_EQ(agent_.call("let_go_twice"), false);
  EXPECT_EQ(agent_.keep_alive(), 1U);
  agent_.call("let_go");  // its destructor has nothing left to give up
  EXPECT_EQ(agent_.keep_alive(), 1U);
}

TEST_F(KeepAliveTest, MovingKeepsOneReferenceOfEach) {
  agent_.call("moved_about");
  EXPECT_EQ(agent_.keep_alive(), 1U);
}

TEST_F(KeepAliveTest, TheScopedFormGivesTheValueAndReleases) {
  auto call = agent_.start("scoped");
  EXPECT_EQ(agent_.keep_alive(), 1U);
  host_.advance(milliseconds(10));
  EXPECT_EQ(call.value(), "slept");
  EXPECT_EQ(agent_.keep_alive(), 0U);
  EXPECT_EQ(agent_.call("scoped_plain"), 7);
  EXPECT_EQ(agent_.keep_alive(), 0U);
}

TEST_F(KeepAliveTest, TheScopedFormReleasesAfterAnException) {
  auto call = agent_.start("scoped_failing");
  EXPECT_EQ(agent_.keep_alive(), 1U);
  host_.advance(milliseconds(1));
  EXPECT_EQ(call.error(), "broken");
  EXPECT_EQ(agent_.keep_alive(), 0U);
}

TEST_F(KeepAliveTest, TheEndOfTheAgentDestroysMembersAndLocalsThatHold) {
  agent_.call("hold");
  auto call = agent_.start("scoped");
  EXPECT_EQ(agent_.keep_alive(), 2U);
  agent_.evict();
  EXPECT_EQ(agent_.keep_alive(), 0U);
  agent_.call("hold");
  EXPECT_EQ(agent_.keep_alive(), 1U);
}

TEST_F(KeepAliveTest, ACancelledCallReleases) {
  auto call = agent_.start("scoped");
  call.cancel();
  EXPECT_EQ(agent_.keep_alive(), 0U);
}

}  // namespace
