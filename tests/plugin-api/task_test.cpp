// Task<T> without any agent.

#include <hearth/task.hpp>

#include <gtest/gtest.h>

#include <coroutine>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace {

using hearth::Task;

// Suspends its coroutine until the test resumes it.
class Gate {
 public:
  class Awaiter {
   public:
    explicit Awaiter(Gate& gate) : gate_(gate) {}
    [[nodiscard]] bool await_ready() const { return false; }
    void await_suspend(std::coroutine_handle<> waiting) { gate_.waiting_ = waiting; }
    void await_resume() const {}

   private:
    Gate& gate_;
  };
  Awaiter wait() { return Awaiter(*this); }
  void open() { std::exchange(waiting_, nullptr).resume(); }

 private:
  std::coroutine_handle<> waiting_;
};

// Writes its name into a list when it is destroyed.
class ListedTrace {
 public:
  ListedTrace(std::vector<std::string>& list, std::string name)
      : list_(list), name_(std::move(name)) {}
  ~ListedTrace() { list_.push_back(name_); }
  ListedTrace(const ListedTrace&) = delete;
  ListedTrace& operator=(const ListedTrace&) = delete;

 private:
  std::vector<std::string>& list_;
  std::string name_;
};

class Told final : public hearth::detail::Finished {
 public:
  void on_finished() noexcept override { ++times; }
  int times = 0;
};

Task<int> five() {
  co_return 5;
}
Task<int> fail(std::string text) {
  throw std::runtime_error(text);
  co_return 0;
}
Task<int> sum_of(int n) {
  int sum = 0;
  for (int i = 0; i < n; ++i) sum += co_await five() - 4;
  co_return sum;
}
Task<std::string> wait_and_say(Gate& gate, std::string text) {
  co_await gate.wait();
  co_return text;
}
Task<std::string> twice(Gate& gate) {
  const std::string one = co_await wait_and_say(gate, "one");
  const std::string two = co_await wait_and_say(gate, "two");
  co_return one + two;
}

Task<int> wait_and_fail(Gate& gate) {
  co_await gate.wait();
  co_return co_await fail("late");
}
Task<int> pass_on(Gate& gate) {
  co_return co_await wait_and_fail(gate);
}

Task<void> inner_traces(Gate& gate, std::vector<std::string>& list) {
  const ListedTrace first(list, "inner first");
  const ListedTrace second(list, "inner second");
  co_await gate.wait();
}
Task<void> outer_traces(Gate& gate, std::vector<std::string>& list) {
  const ListedTrace local(list, "outer");
  co_await inner_traces(gate, list);
}

Task<std::unique_ptr<int>> make_seven() {
  co_return std::make_unique<int>(7);
}
Task<int> open_seven() {
  const std::unique_ptr<int> value = co_await make_seven();
  co_return *value;
}

TEST(TaskTest, IsLazyUntilStarted) {
  bool ran = false;
  auto body = [](bool& flag) -> Task<void> {
    flag = true;
    co_return;
  };
  Task<void> task = body(ran);
  EXPECT_FALSE(ran);
  task.start();
  EXPECT_TRUE(ran);
  EXPECT_TRUE(task.done());
}

TEST(TaskTest, HasAValueWithoutAFrame) {
  Task<std::string> ready = std::string("now");
  EXPECT_TRUE(ready.done());
  EXPECT_EQ(ready.take(), "now");
  Task<void> nothing;
  EXPECT_TRUE(nothing.done());
  nothing.take();
}

TEST(TaskTest, AwaitsAMillionTasksThatEndAtOnceWithoutUsingTheStack) {
  Task<int> task = sum_of(1'000'000);
  task.start();
  ASSERT_TRUE(task.done());
  EXPECT_EQ(task.take(), 1'000'000);
}

TEST(TaskTest, GoesOnWhereItWaitedAndTellsWhenItEnds) {
  Gate gate;
  Told told;
  Task<std::string> task = twice(gate);
  task.start();
  task.tell(&told);
  EXPECT_FALSE(task.done());
  gate.open();
  EXPECT_FALSE(task.done());
  EXPECT_EQ(told.times, 0);
  gate.open();
  ASSERT_TRUE(task.done());
  EXPECT_EQ(told.times, 1);
  EXPECT_EQ(task.take(), "onetwo");
}

TEST(TaskTest, ExceptionsComeOutOfTheAwaitAndCanBeCaught) {
  auto outer = []() -> Task<std::string> {
    std::string caught;
    try {
      co_await fail("inner");
    } catch (const std::exception& error) {
      caught = error.what();
    }
    co_return caught + std::to_string(co_await five());
  };
  Task<std::string> task = outer();
  task.start();
  EXPECT_EQ(task.take(), "inner5");
}

TEST(TaskTest, ExceptionsAfterAWaitReachTheOutermostTask) {
  Gate gate;
  Task<int> task = pass_on(gate);
  task.start();
  gate.open();
  ASSERT_TRUE(task.done());
  EXPECT_THROW(task.take(), std::runtime_error);
}

TEST(TaskTest, DestroyingASuspendedTaskUnwindsInnermostFirst) {
  Gate gate;
  std::vector<std::string> list;
  {
    Task<void> task = outer_traces(gate, list);
    task.start();
    EXPECT_TRUE(list.empty());
  }
  EXPECT_EQ(list, (std::vector<std::string>{"inner second", "inner first", "outer"}));
}

TEST(TaskTest, ATaskThatNeverRanFreesItsParameters) {
  auto marker = std::make_shared<int>(1);
  auto body = [](std::shared_ptr<int> kept) -> Task<int> { co_return *kept; };
  {
    const Task<int> task = body(marker);
  }
  EXPECT_EQ(marker.use_count(), 1);
}

TEST(TaskTest, MoveOnlyValuesPassThrough) {
  Task<int> task = open_seven();
  task.start();
  EXPECT_EQ(task.take(), 7);
}

TEST(TaskTest, TakingTheValueOfAMovedTaskIsAnError) {
  Task<int> task = 5;
  const Task<int> moved = std::move(task);
  EXPECT_TRUE(moved.done());
  Task<int> empty = Task<int>(hearth::detail::Frame<int>());
  EXPECT_THROW(empty.take(), std::logic_error);
}

}  // namespace
