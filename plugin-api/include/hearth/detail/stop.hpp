#pragma once
// What ends a wait early.

#include <hearth/detail/activation.hpp>

#include <optional>
#include <stop_token>

namespace hearth::detail {

// Of the fiber that runs now: cancel_fiber() requests it. Empty outside of a fiber.
std::stop_token cancel_token(Activation& activation) noexcept;

// Calls Waiter::stop() at a stop of either token, at once if it was requested before. A stop is
// requested on the agent's own thread.
// Lifetime  Not longer than the waiter's.
class StopWatch {
 public:
  void watch(const std::stop_token& given, const std::stop_token& fiber, Waiter& waiter) {
    given_.emplace(given, Stop{&waiter});
    fiber_.emplace(fiber, Stop{&waiter});
  }

 private:
  struct Stop {
    Waiter* waiter;
    void operator()() const noexcept { waiter->stop(); }
  };
  std::optional<std::stop_callback<Stop>> given_;
  std::optional<std::stop_callback<Stop>> fiber_;
};

}  // namespace hearth::detail
