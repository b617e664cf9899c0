#pragma once
// co_await retry(function, options): repeats a function after growing random waits, until it
// succeeds or the attempts are used up.

#include <hearth/error.hpp>
#include <hearth/json.hpp>
#include <hearth/option.hpp>
#include <hearth/task.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <type_traits>
#include <utility>

namespace hearth {

// Whether to try again after this failure; `next_attempt` is 2, 3, ...
using ShouldRetry = bool (*)(const std::exception& failure, int next_attempt);

struct RetryOptions {
  NumberOption<int> max_attempts = 3;  // the first one included
  TimeOption base_delay = std::chrono::milliseconds(100);
  TimeOption max_delay = std::chrono::seconds(3);
  // Whether to try again after this failure; `next_attempt` is 2, 3, ... Empty: unless the failure
  // is_final(). A Final, and an exception that is no std::exception, are never retried.
  std::function<bool(const std::exception& failure, int next_attempt)> should_retry = {};
};

namespace detail {

template <class Function>
auto attempt_once(Function& function, int attempt) {
  if constexpr (std::is_invocable_v<Function&, int>)
    return call_kept(function, attempt);
  else
    return call_kept(function);
}
template <class Function>
using AttemptResult =
    decltype(attempt_once(std::declval<Function&>(), 1));  // a value, or a Task of one
template <class Function>
using AttemptValue = TaskValue<AttemptResult<Function>>;

void check_retry(const RetryOptions& options);

bool is_final(const std::exception_ptr& failure) noexcept;

bool worth_another(const RetryOptions& options, const std::exception_ptr& failure, int attempt);

// Full jitter: anything from 0 up to, but not including, min(2^attempt * base, max).
std::chrono::milliseconds retry_delay(const RetryOptions& options, int attempt,
                                      std::uint64_t random);

// Options that the host stores and follows, for schedules and the queue.
struct StoredRetry {
  std::uint32_t max_attempts;
  std::uint64_t base_ms;
  std::uint64_t max_ms;
};

// `defaults` gives the class's options. They may have a should_retry for retry(), which the host
// ignores.
template <class Defaults>
StoredRetry stored_retry(const std::optional<RetryOptions>& options, Defaults defaults) {
  if (options && options->should_retry)
    throw Error(HEARTH_E_INVALID, "retry.shouldRetry cannot be stored");
  const RetryOptions chosen = options ? *options : defaults();
  check_retry(chosen);
  return {static_cast<std::uint32_t>(chosen.max_attempts),
          static_cast<std::uint64_t>(chosen.base_delay.count()),
          static_cast<std::uint64_t>(chosen.max_delay.count())};
}

RetryOptions read_retry(const Json& record);
Json to_json_retry(const RetryOptions& options);

}  // namespace detail

}  // namespace hearth
