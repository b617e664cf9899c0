#pragma once
// What threads that may wait ask of shards.

#include "runtime/runtime.hpp"

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace hearth::server {

// What each of some shards says, asked at the same time, each on its own thread. Nothing if one
// does not answer in time; what it was asked then still happens.
template <class T>
class Questions {
 public:
  explicit Questions(std::chrono::milliseconds patience) : patience_(patience) {}

  void ask(runtime::Runtime& runtime, unsigned shard, std::function<T(runtime::Shard&)> question) {
    // Shared: whoever answers is still inside set_value() when the wait is over, or comes when
    // nobody waits any more.
    const auto answer = std::make_shared<std::promise<T>>();
    answers_.push_back(answer->get_future());
    runtime.loop(shard).post(
        [answer, question = std::move(question), &asked = runtime.shard(shard)] {
          answer->set_value(question(asked));
        });
  }

  [[nodiscard]] std::optional<std::vector<T>> wait() {
    const auto deadline = std::chrono::steady_clock::now() + patience_;
    std::vector<T> all;
    for (std::future<T>& answer : answers_) {
      if (answer.wait_until(deadline) != std::future_status::ready) return std::nullopt;
      all.push_back(answer.get());
    }
    return all;
  }

 private:
  const std::chrono::milliseconds patience_;
  std::vector<std::future<T>> answers_;
};

template <class T>
std::optional<T> ask_one(runtime::Runtime& runtime, unsigned shard,
                         std::chrono::milliseconds patience,
                         std::function<T(runtime::Shard&)> question) {
  Questions<T> questions(patience);
  questions.ask(runtime, shard, std::move(question));
  auto answer = questions.wait();
  if (!answer) return std::nullopt;
  return std::move(answer->front());
}

}  // namespace hearth::server
