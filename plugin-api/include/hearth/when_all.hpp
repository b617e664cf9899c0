#pragma once
// Tasks side by side:
//
//     std::vector<hearth::Task<int>> prices;
//     for (const std::string& shop : shops) prices.push_back(price_at(shop));
//     const std::vector<int> all = co_await hearth::when_all(std::move(prices));
//
//     auto [page, left] = co_await hearth::when_all(load(url), count_left());
//
// All of them begin, in their order, each up to its first wait. The values come in the same order
// when the last one has ended; so does the first failure of that order, if there is one. A failure
// does not end the others: they may have effects. They are destroyed with the coroutine that waits.

#include <hearth/task.hpp>

#include <coroutine>
#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace hearth {

namespace detail {

// Waits for the tasks that were given to run().
class AllAwaiter final : public Finished {
 public:
  template <class T>
  void run(Task<T>& task) {
    task.start();
    if (task.done()) return;
    ++left_;
    task.tell(this);
  }
  [[nodiscard]] bool await_ready() const noexcept { return left_ == 0; }
  void await_suspend(std::coroutine_handle<> waiting) noexcept { waiting_ = waiting; }
  void await_resume() const noexcept {}
  void on_finished() noexcept override {
    if (--left_ == 0 && waiting_) waiting_.resume();  // may destroy the task and this awaiter
  }

 private:
  std::size_t left_ = 0;
  std::coroutine_handle<> waiting_;
};

template <class... T>
Task<std::tuple<T...>> all_of(std::tuple<Task<T>...> tasks) {
  AllAwaiter waiting;
  std::apply([&waiting](auto&... each) { (waiting.run(each), ...); }, tasks);
  co_await waiting;
  co_return std::apply([](auto&... each) { return std::tuple<T...>{each.take()...}; }, tasks);
}

}  // namespace detail

template <class T>
Task<std::vector<T>> when_all(std::vector<Task<T>> tasks) {
  detail::AllAwaiter waiting;
  for (Task<T>& each : tasks) waiting.run(each);
  co_await waiting;
  std::vector<T> values;
  values.reserve(tasks.size());
  for (Task<T>& each : tasks) values.push_back(each.take());
  co_return values;
}

inline Task<void> when_all(std::vector<Task<void>> tasks) {
  detail::AllAwaiter waiting;
  for (Task<void>& each : tasks) waiting.run(each);
  co_await waiting;
  for (Task<void>& each : tasks) each.take();
}

// Two or more tasks that give values, not of the same type.
template <class... T>
  requires(sizeof...(T) > 1 && (!std::is_void_v<T> && ...))
[[nodiscard]] Task<std::tuple<T...>> when_all(Task<T>... tasks) {
  return detail::all_of(std::tuple<Task<T>...>(std::move(tasks)...));
}

}  // namespace hearth
