// Waits inside an agent, with limits: Signal, with_timeout(), wait_fiber(id, timeout), when_all().

#include "one_agent.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace {

using hearth::Json;
using hearth::Task;
using hearth::testing::FetchReply;
using hearth::testing::SentRequest;
using std::chrono::milliseconds;
using std::chrono::seconds;

// Counts itself as long as it lives.
class Guest {
 public:
  explicit Guest(int& guests) : guests_(guests) { ++guests_; }
  ~Guest() { --guests_; }
  Guest(const Guest&) = delete;
  Guest& operator=(const Guest&) = delete;

 private:
  int& guests_;
};

class Waiting : public hearth::Agent {
 public:
  static void methods(hearth::Methods<Waiting>& m) {
    m.add("wait", &Waiting::wait);
    m.add("open", &Waiting::open);
    m.add("stop", &Waiting::stop);
    m.add("wait_at_most", &Waiting::wait_at_most);
    m.add("limited", &Waiting::limited);
    m.add("guests", &Waiting::guests);
    m.add("wait_for", &Waiting::wait_for);
    m.add("begin", &Waiting::begin);
    m.add("cancel", &Waiting::cancel);
    m.add("all", &Waiting::all);
    m.add("both", &Waiting::both);
    m.add("none", &Waiting::none);
    m.fiber("sleep", &Waiting::sleep_ms);
    m.fiber("wait", &Waiting::wait_in_fiber);
  }

  Task<int> wait() {
    while (!open_) co_await opened_.wait(stop_.get_token());
    co_return ++passed_;
  }
  int open(bool really) {
    open_ = really;
    opened_.notify();
    return passed_;
  }
  void stop() { stop_.request_stop(); }
  Task<int> wait_at_most(int ms) {
    co_await with_timeout(opened_.wait(), milliseconds(ms));
    co_return ++passed_;
  }

  Task<std::string> slow(int ms, std::string how) {
    const Guest guest(guests_);
    if (how == "fetch")
      static_cast<void>(co_await fetch("https://a.example/"));
    else if (ms > 0)
      co_await sleep(milliseconds(ms));
    if (how == "fails") throw std::runtime_error("broken " + std::to_string(ms));
    co_return how + " " + std::to_string(ms);
  }
  Task<std::string> limited(int ms, std::string how, int limit) {
    try {
      co_return co_await with_timeout(slow(ms, how), milliseconds(limit));
    } catch (const hearth::Error& error) {
      EXPECT_EQ(error.code(), HEARTH_E_TIMEOUT);
      EXPECT_EQ(guests_, 0) << "the task is gone";
    }
    co_return "too slow";
  }
  int guests() { return guests_; }

  Task<Json> sleep_ms(int ms, hearth::FiberContext&) {
    co_await sleep(milliseconds(ms));
    co_return ms;
  }
  Task<void> wait_in_fiber(hearth::FiberContext&) {
    const Guest guest(guests_);
    co_await opened_.wait();
  }
  std::string begin(std::string name, int ms) {
    return start_fiber(name, ms, {.keep_record = true}).id();
  }
  bool cancel(std::string id) { return cancel_fiber(id); }
  Task<Json> wait_for(std::string id, int ms) {
    const hearth::FiberRecord record = co_await wait_fiber(id, milliseconds(ms));
    co_return record.result_as<Json>();
  }

  Task<std::vector<std::string>> all(std::vector<int> times, std::string how) {
    std::vector<Task<std::string>> tasks;
    for (const int ms : times) tasks.push_back(slow(ms, how));
    co_return co_await hearth::when_all(std::move(tasks));
  }
  Task<Json> both(int a, int b) {
    auto [one, two] = co_await hearth::when_all(slow(a, "one"), count_after(b));
    co_return Json{one, two};
  }
  Task<int> count_after(int ms) {
    co_await sleep(milliseconds(ms));
    co_return ms;
  }
  Task<void> nothing(int ms) { static_cast<void>(co_await slow(ms, ms == 7 ? "fails" : "")); }
  Task<void> none(std::vector<int> times) {
    std::vector<Task<void>> tasks;
    for (const int ms : times) tasks.push_back(nothing(ms));
    co_await hearth::when_all(std::move(tasks));
  }

 private:
  hearth::Signal opened_{*this};
  std::stop_source stop_;
  bool open_ = false;
  int passed_ = 0;
  int guests_ = 0;
};

class WaitsTest : public OneAgent<Waiting> {};

// ---- Signal -------------------------------------------------------------------------------------

TEST_F(WaitsTest, ASignalWakesAllWhoWaitAtTheEndOfTheEvent) {
  const auto first = agent_.start("wait");
  const auto second = agent_.start("wait");
  EXPECT_EQ(agent_.call("open", false), 0) << "woken for nothing, they wait again";
  EXPECT_FALSE(first.done());
  EXPECT_EQ(agent_.call("open", true), 0) << "none has gone on inside of notify()";
  EXPECT_EQ(first.value(), 1);
  EXPECT_EQ(second.value(), 2);
}

TEST_F(WaitsTest, ASignalHasNoMemory) {
  agent_.call("open", true);
  const auto late = agent_.start("wait_at_most", 1000);
  EXPECT_FALSE(late.done());
  agent_.call("open", true);
  EXPECT_EQ(late.value(), 1);
}

TEST_F(WaitsTest, AStopEndsAWaitForASignalNowAndLater) {
  const auto before = agent_.start("wait");
  agent_.call("stop");
  const auto after = agent_.start("wait");
  for (const auto& call : {before, after}) {
    ASSERT_TRUE(call.done());
    EXPECT_EQ(call.status(), HEARTH_E_CANCELLED);
  }
}

TEST_F(WaitsTest, ACancelEndsTheWaitOfAFiber) {
  const Json id = agent_.call("begin", "wait", 0);
  EXPECT_EQ(agent_.call("guests"), 1);
  EXPECT_EQ(agent_.call("cancel", id), true);
  EXPECT_EQ(agent_.call("guests"), 0);
  EXPECT_TRUE(host_.log().empty());
}

TEST_F(WaitsTest, AnEvictionEndsAWaitForASignal) {
  const auto call = agent_.start("wait");
  agent_.evict();
  EXPECT_EQ(agent_.call("open", true), 0);
  EXPECT_TRUE(call.failed());
}

// ---- with_timeout() -----------------------------------------------------------------------------

TEST_F(WaitsTest, ATaskInTimeGivesItsValueAndOneThatIsTooSlowIsDestroyed) {
  struct Case {
    int ms;
    const char* how;
    int limit;
    const char* told;
  };
  for (const auto& [ms, how, limit, told] :
       {Case{0, "now", 0, "now 0"}, Case{10, "soon", 100, "soon 10"},
        Case{100, "late", 10, "too slow"}, Case{1, "never", 0, "too slow"},
        Case{0, "fetch", 10, "too slow"}}) {
    host_.on_fetch([](const SentRequest&) { return FetchReply{.after = seconds(1)}; });
    const auto call = agent_.start("limited", ms, how, limit);
    host_.advance(milliseconds(200));
    EXPECT_EQ(call.value(), told);
    EXPECT_EQ(agent_.call("guests"), 0);
  }
  host_.advance(seconds(5));
}

TEST_F(WaitsTest, TheFailureOfATaskInTimeIsItsOwn) {
  for (const int ms : {0, 5}) {
    const auto call = agent_.start("limited", ms, "fails", 100);
    host_.advance(milliseconds(200));
    EXPECT_EQ(call.error(), "broken " + std::to_string(ms));
  }
}

TEST_F(WaitsTest, ASignalIsAwaitedWithALimit) {
  const auto call = agent_.start("wait_at_most", 50);
  host_.advance(milliseconds(49));
  EXPECT_FALSE(call.done());
  host_.advance(milliseconds(1));
  EXPECT_EQ(call.status(), HEARTH_E_TIMEOUT);
  EXPECT_EQ(agent_.call("open", true), 0) << "it waits no more";
}

TEST_F(WaitsTest, AnEvictionEndsATaskWithALimit) {
  static_cast<void>(agent_.start("limited", 100, "late", 1000));
  EXPECT_EQ(agent_.call("guests"), 1);
  agent_.evict();
  host_.advance(seconds(2));
  EXPECT_EQ(agent_.unfinished(), 0U);
}

TEST_F(WaitsTest, AFiberIsAwaitedWithALimit) {
  const Json id = agent_.call("begin", "sleep", 100);
  const auto hasty = agent_.start("wait_for", id, 50);
  const auto patient = agent_.start("wait_for", id, 200);
  host_.advance(milliseconds(60));
  EXPECT_EQ(hasty.status(), HEARTH_E_TIMEOUT);
  EXPECT_FALSE(patient.done());
  host_.advance(milliseconds(60));
  EXPECT_EQ(patient.value(), 100);
  EXPECT_EQ(agent_.call("wait_for", id, 0), 100) << "it is settled";
  EXPECT_EQ(agent_.start("wait_for", "no such id", 0).status(), HEARTH_E_NOT_FOUND);
}

// ---- when_all() ---------------------------------------------------------------------------------

TEST_F(WaitsTest, TasksRunSideBySideAndTheirValuesComeInOrder) {
  const auto call = agent_.start("all", std::vector{30, 0, 10, 20}, "t");
  EXPECT_EQ(agent_.call("guests"), 3);
  host_.advance(milliseconds(10));
  EXPECT_EQ(agent_.call("guests"), 2);
  host_.advance(milliseconds(19));
  EXPECT_FALSE(call.done());
  host_.advance(milliseconds(1));
  EXPECT_EQ(call.value(), Json({"t 30", "t 0", "t 10", "t 20"}));
  EXPECT_EQ(agent_.call("all", std::vector<int>(), "t"), Json::array());
  EXPECT_EQ(agent_.call("all", std::vector{0, 0}, "t"), Json({"t 0", "t 0"}));
}

TEST_F(WaitsTest, TheFirstFailureOfTheOrderComesWhenAllHaveEnded) {
  const auto call = agent_.start("all", std::vector{30, 10, 20}, "fails");
  host_.advance(milliseconds(29));
  EXPECT_FALSE(call.done());
  host_.advance(milliseconds(1));
  EXPECT_EQ(call.error(), "broken 30");
  EXPECT_EQ(agent_.call("guests"), 0);
}

TEST_F(WaitsTest, TasksOfTwoTypesRunSideBySide) {
  for (const auto& [a, b] : {std::pair{10, 20}, std::pair{20, 10}, std::pair{0, 10}}) {
    const auto call = agent_.start("both", a, b);
    host_.advance(milliseconds(20));
    EXPECT_EQ(call.value(), Json({"one " + std::to_string(a), b}));
  }
}

TEST_F(WaitsTest, TasksWithoutAValueRunSideBySide) {
  const auto call = agent_.start("none", std::vector{30, 7, 20});
  host_.advance(milliseconds(29));
  EXPECT_FALSE(call.done());
  host_.advance(milliseconds(1));
  EXPECT_EQ(call.error(), "broken 7");
  EXPECT_EQ(agent_.call("none", std::vector{0}), Json());
}

TEST_F(WaitsTest, AnEvictionEndsTasksThatRunSideBySide) {
  static_cast<void>(agent_.start("all", std::vector{30, 10}, "t"));
  agent_.evict();
  host_.advance(seconds(1));
  EXPECT_EQ(agent_.unfinished(), 0U);
  EXPECT_EQ(agent_.call("guests"), 0);
}

}  // namespace
