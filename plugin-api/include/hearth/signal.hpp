#pragma once
// A coroutine of an agent waits for something that other code of the agent does:
//
//     while (orders_.empty()) co_await changed_.wait();  // hearth::Signal changed_{*this};
//
//     orders_.push_back(order);                           // in another handler
//     changed_.notify();
//
// With a limit: co_await with_timeout(changed_.wait(), 30s), see timeout.hpp.

#include <hearth/detail/activation.hpp>
#include <hearth/detail/stop.hpp>
#include <hearth/task.hpp>

#include <coroutine>
#include <functional>
#include <map>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

namespace hearth {

namespace detail {

// A wait until code of the agent tells it. Lives in the frame of the coroutine.
class ToldWait final : public Waiter {
 public:
  // The waits that were not told yet, by what they wait for.
  using List = std::multimap<std::string, ToldWait*, std::less<>>;

  ToldWait(Activation& activation, List& list, std::string name, std::stop_token stop)
      : activation_(activation), list_(list), name_(std::move(name)), stop_(std::move(stop)) {}
  ~ToldWait();
  ToldWait(const ToldWait&) = delete;
  ToldWait& operator=(const ToldWait&) = delete;

  [[nodiscard]] bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> waiting);
  // What it was told. Failure: Error(CANCELLED), final, if it was stopped.
  bool await_resume() const;

  // Ends all waits of this name, at the end of the running event.
  static void tell(List& list, std::string_view name, bool what);
  void stop() noexcept override;
  void resume() override;

 private:
  void leave() noexcept;

  Activation& activation_;
  List& list_;
  std::string name_;
  std::stop_token stop_;
  Context context_;
  std::coroutine_handle<> waiting_;
  bool listed_ = false;
  bool what_ = false;
  bool stopped_ = false;
  StopWatch stops_;
};

}  // namespace detail

// Lifetime  A member of the agent. A wait is in memory only, as sleep(); an eviction ends it.
// Threads   The agent's own. It has no memory: notify() ends the waits of this moment, at the end
//           of the running event, and a wait that begins later waits for the next one. So test the
//           condition in a loop, as above.
class Signal {
 public:
  explicit Signal(Agent& agent);
  Signal(const Signal&) = delete;
  Signal& operator=(const Signal&) = delete;

  // `stop` ends the wait; so does the cancel of the fiber that waits.
  // Failure   Error(CANCELLED), which is final: it was stopped.
  [[nodiscard]] Task<void> wait(std::stop_token stop = {});
  void notify() { detail::ToldWait::tell(waits_, {}, true); }

 private:
  detail::Activation& activation_;
  detail::ToldWait::List waits_;
};

}  // namespace hearth
