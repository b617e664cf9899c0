// Coroutine lambdas with captures. A function that keeps the lambda accepts it; any other function
// refuses it before its code runs.
#include "one_agent.hpp"

#include <hearth/agent.hpp>

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace dying_lambda_tests {
namespace {

using hearth::FiberContext;
using hearth::Task;
using std::chrono::milliseconds;

template <class Function>
class Holder {
 public:
  explicit Holder(Function function) : function_(std::move(function)) {}
  auto operator()() { return function_(); }

 private:
  Function function_;
};

// Calls its parameter, which is a copy.
constexpr auto kCall = [](auto function) { return function(); };

class Lambdas : public hearth::Agent {
 public:
  static void methods(hearth::Methods<Lambdas>& m) {
    m.add("returned", &Lambdas::returned);
    m.add("returned_at_once", &Lambdas::returned_at_once);
    m.add("made_by_a_helper", &Lambdas::made_by_a_helper);
    m.add("awaited", &Lambdas::awaited);
    m.add("awaited_at_once", &Lambdas::awaited_at_once);
    m.add("kept", &Lambdas::kept);
    m.add("without_captures", &Lambdas::without_captures);
    m.add("as_a_parameter", &Lambdas::as_a_parameter);
    m.add("made_by_a_kept_one", &Lambdas::made_by_a_kept_one);
    m.add("made_by_a_kept_function", &Lambdas::made_by_a_kept_function);
    m.add("made_by_a_kept_binding", &Lambdas::made_by_a_kept_binding);
    m.add("copied_by_a_kept_binding", &Lambdas::copied_by_a_kept_binding);
    m.add("copied_by_a_kept_front", &Lambdas::copied_by_a_kept_front);
    m.add("copied_by_a_kept_result", &Lambdas::copied_by_a_kept_result);
    m.add("copied_by_a_function_of_front", &Lambdas::copied_by_a_function_of_front);
    m.add("copied_by_a_function_of_result", &Lambdas::copied_by_a_function_of_result);
    m.add("copied_by_a_kept_function", &Lambdas::copied_by_a_kept_function);
    m.add("copied_for_a_kept_member", &Lambdas::copied_for_a_kept_member);
    m.add("made_by_a_kept_object", &Lambdas::made_by_a_kept_object);
    m.add("made_by_a_kept_pointer", &Lambdas::made_by_a_kept_pointer);
    m.add("a_reference_is_kept", &Lambdas::a_reference_is_kept);
  }

  auto lambda() {
    return [this]() -> Task<int> { co_return co_await later(); };
  }
  Task<int> returned() {
    auto work = [this]() -> Task<int> { co_return co_await later(); };
    return work();
  }
  Task<int> returned_at_once() {
    int seven = 6;
    ++seven;
    return [seven]() -> Task<int> { co_return seven; }();
  }
  Task<int> made_by_a_helper() { co_return co_await returned(); }

  Task<int> awaited() {
    auto work = [this]() -> Task<int> { co_return co_await later(); };
    co_return co_await work();
  }
  Task<int> awaited_at_once() {
    co_return co_await [this]() -> Task<int> { co_return co_await later(); }();
  }
  Task<int> kept() {
    const auto as_fiber = [this](FiberContext&) -> Task<int> { co_return co_await later(); };
    const auto plain = [this]() -> Task<int> { co_return co_await later(); };
    int sum = co_await run_fiber("work", as_fiber);
    sum += co_await retry(plain);
    sum += co_await keep_alive_while(plain);
    for (const auto& wrapped : wrappings()) sum += co_await keep_alive_while(wrapped);
    const auto added = [this](int more) -> Task<int> { co_return more + co_await later(); };
    sum += co_await keep_alive_while(std::bind(added, 0));
    sum += co_await keep_alive_while(std::bind<Task<int>>(added, 0));
    sum += co_await keep_alive_while(std::bind_front(added, 0));
    const Holder<decltype(plain)> holder(plain);
    sum += co_await keep_alive_while(holder);
    sum += co_await keep_alive_while(std::bind(&Holder<decltype(plain)>::operator(), holder));
    sum += co_await keep_alive_while(std::bind_front(&Holder<decltype(plain)>::operator(), holder));
    after_turn([this]() -> Task<void> { log.info(std::to_string(co_await later())); });
    co_return sum;
  }
  Task<int> without_captures() {
    return []() -> Task<int> { co_return 7; }();
  }
  template <class Function>
  Task<int> call_it(Function function) {
    co_return co_await function();
  }
  Task<int> made_by_a_kept_one() {
    co_return co_await keep_alive_while([this] { return returned(); });
  }
  Task<int> made_by_a_kept_function() {
    const std::function<Task<int>()> function = [this] { return returned(); };
    co_return co_await keep_alive_while(function);
  }
  Task<int> made_by_a_kept_binding() {
    co_return co_await keep_alive_while(std::bind(&Lambdas::returned, this));
  }
  // In each of these the called lambda is the parameter of kCall, which dies.
  Task<int> copied_by_a_kept_binding() {
    co_return co_await keep_alive_while(std::bind(kCall, lambda()));
  }
  Task<int> copied_by_a_kept_front() {
    co_return co_await keep_alive_while(std::bind_front(kCall, lambda()));
  }
  Task<int> copied_by_a_kept_result() {
    co_return co_await keep_alive_while(std::bind<Task<int>>(kCall, lambda()));
  }
  Task<int> copied_by_a_function_of_front() {
    const std::function<Task<int>()> binding = std::bind_front(kCall, lambda());
    co_return co_await keep_alive_while(binding);
  }
  Task<int> copied_by_a_function_of_result() {
    const std::function<Task<int>()> binding = std::bind<Task<int>>(kCall, lambda());
    co_return co_await keep_alive_while(binding);
  }
  Task<int> copied_by_a_kept_function() {
    const std::function<Task<int>()> binding = std::bind(kCall, lambda());
    co_return co_await keep_alive_while(binding);
  }
  Task<int> copied_for_a_kept_member() {
    const auto work = lambda();
    co_return co_await keep_alive_while(std::bind(&Lambdas::call_now<decltype(work)>, this, work));
  }
  Task<int> made_by_a_kept_object() {
    auto made = [this] { return returned(); };
    co_return co_await keep_alive_while(Holder<decltype(made)>(made));
  }
  Task<int> made_by_a_kept_pointer() { co_return co_await keep_alive_while(&Lambdas::of_nobody); }
  // What is kept is the reference.
  Task<int> a_reference_is_kept() {
    const auto work = lambda();
    co_return co_await keep_alive_while(std::cref(work));
  }
  Task<int> as_a_parameter() {
    return call_it([this]() -> Task<int> { co_return co_await later(); });
  }

 private:
  template <class Function>
  Task<int> call_now(Function function) {
    return function();
  }
  // Functions that fit into a std::function, one that it allocates, and bound ones.
  std::vector<std::function<Task<int>()>> wrappings() {
    const std::array<char, 100> large{};
    std::vector<std::function<Task<int>()>> all;
    all.emplace_back([this]() -> Task<int> { co_return co_await later(); });
    all.emplace_back([this, large]() -> Task<int> { co_return large[0] + co_await later(); });
    all.emplace_back(
        std::bind([this](int more) -> Task<int> { co_return more + co_await later(); }, 0));
    all.emplace_back(std::bind<Task<int>>(
        [this](int more) -> Task<int> { co_return more + co_await later(); }, 0));
    all.emplace_back(
        std::bind_front([this](int more) -> Task<int> { co_return more + co_await later(); }, 0));
    all.emplace_back(std::bind(&Lambdas::later, this));
    return all;
  }
  static Task<int> of_nobody() {
    int seven = 6;
    ++seven;
    return [seven]() -> Task<int> { co_return seven; }();
  }
  Task<int> later() {
    co_await sleep(milliseconds(1));
    co_return 7;
  }
};

class DyingLambdaTest : public OneAgent<Lambdas> {
 protected:
  std::string outcome(const char* method) {
    const auto call = agent_.start(method);
    host_.advance(milliseconds(20));
    return call.failed() ? call.error() : hearth::to_text(call.value());
  }
};

constexpr const char* kRefusal =
    "a lambda with captures is a coroutine that may outlive it: make it a member function, or give "
    "it to start_fiber(), run_fiber(), retry(), keep_alive_while(), operation() or after_turn(), "
    "which keep it";

TEST_F(DyingLambdaTest, WhatNobodyKeepsIsRefused) {
  for (const char* const method :
       {"returned", "returned_at_once", "made_by_a_helper", "awaited", "awaited_at_once",
        "as_a_parameter", "made_by_a_kept_one", "made_by_a_kept_function", "made_by_a_kept_binding",
        "copied_by_a_kept_binding", "copied_by_a_kept_front", "copied_by_a_kept_result",
        "copied_by_a_function_of_front", "copied_by_a_function_of_result",
        "copied_by_a_kept_function", "copied_for_a_kept_member", "made_by_a_kept_object",
        "made_by_a_kept_pointer", "a_reference_is_kept"})
    EXPECT_EQ(outcome(method), kRefusal) << method;
}

TEST_F(DyingLambdaTest, WhatIsKeptOrHasNothingToLoseRuns) {
  EXPECT_EQ(outcome("without_captures"), "7");
  EXPECT_EQ(outcome("kept"), "105");
  EXPECT_NE(host_.log().back().find('7'), std::string::npos);
}

}  // namespace
}  // namespace dying_lambda_tests
