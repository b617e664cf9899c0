#pragma once
// Questions to shards, from threads that may wait.

#include "base/error.hpp"
#include "runtime/runtime.hpp"
#include "storage/agent_key.hpp"

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace hearth::server {

inline Error no_loop() {
  return {Errc::kUnavailable, "an event loop does not answer: the code of some agent holds it up"};
}

// Asks several shards at the same time, each on its own thread. wait() returns all answers, or
// nothing if a shard does not answer in time. A question that has not begun by then never runs: the
// change that it would make has been refused. One that has begun gets that time once more.
template <class T>
class Questions {
 public:
  explicit Questions(std::chrono::milliseconds patience) : patience_(patience) {}

  void ask(runtime::Runtime& runtime, unsigned shard, std::function<T(runtime::Shard&)> question) {
    const auto asked = std::make_shared<Asked>();
    asked_.push_back(asked);
    runtime.loop(shard).post([asked, question = std::move(question), &its = runtime.shard(shard)] {
      if (!asked->has_begun_or_ended.exchange(true)) asked->promise.set_value(question(its));
    });
  }

  [[nodiscard]] std::optional<std::vector<T>> wait() {
    const auto deadline = std::chrono::steady_clock::now() + patience_;
    std::vector<T> all;
    for (const auto& asked : asked_) {
      const auto is_there = [&asked](std::chrono::steady_clock::time_point until) {
        return asked->answer.wait_until(until) == std::future_status::ready;
      };
      if (is_there(deadline) ||
          (asked->has_begun_or_ended.exchange(true) && is_there(deadline + patience_)))
        all.push_back(asked->answer.get());
    }
    if (all.size() < asked_.size()) return std::nullopt;
    return all;
  }

 private:
  // Shared: the shard may still be in set_value() when the wait is over, or may answer after it.
  struct Asked {
    std::atomic<bool> has_begun_or_ended = false;  // the question has begun, or its wait is over
    std::promise<T> promise;
    std::future<T> answer = promise.get_future();
  };

  const std::chrono::milliseconds patience_;
  std::vector<std::shared_ptr<Asked>> asked_;
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

// Asks the shard that an agent lives on.
template <class Question>
auto ask_home(runtime::Runtime& runtime, const storage::AgentKey& key,
              std::chrono::milliseconds patience, Question question) {
  using Answer = std::invoke_result_t<Question, runtime::Shard&>;
  return ask_one<Answer>(runtime, runtime.shard_index(key), patience, std::move(question));
}

// Asks all shards.
template <class Question>
auto ask_all(runtime::Runtime& runtime, std::chrono::milliseconds patience,
             const Question& question) {
  Questions<std::invoke_result_t<Question, runtime::Shard&>> questions(patience);
  for (unsigned index = 0; index < runtime.shard_count(); ++index)
    questions.ask(runtime, index, question);
  return questions.wait();
}

// Brings that to the device. `what`: "agent" or "object".
inline Result<void> sync_end(runtime::Runtime& runtime, std::string_view what) {
  if (runtime.sync_directory()) return {};
  return Error{Errc::kInternal, "the " + std::string(what) +
                                    " is being destroyed, but a loss of power may bring it back: "
                                    "the directory of agents could not be synced"};
}

// What the shards know of these agents, in their order. kUnavailable: a shard does not answer.
inline Result<std::vector<runtime::ShardAdmin::Standing>> standings_of(
    runtime::Runtime& runtime, const std::vector<storage::AgentKey>& keys,
    std::chrono::milliseconds patience) {
  using Standings = std::vector<runtime::ShardAdmin::Standing>;
  std::map<unsigned, std::vector<std::size_t>> places;  // of `keys`, by shard
  for (std::size_t i = 0; i < keys.size(); ++i) places[runtime.shard_index(keys[i])].push_back(i);
  Questions<Standings> questions(patience);
  for (const auto& [shard, here] : places) {
    std::vector<storage::AgentKey> asked;
    for (const std::size_t place : here) asked.push_back(keys[place]);
    questions.ask(runtime, shard, [asked = std::move(asked)](runtime::Shard& its) {
      Standings standings;
      for (const storage::AgentKey& key : asked) standings.push_back(its.admin().standing(key));
      return standings;
    });
  }
  auto answers = questions.wait();
  if (!answers) return no_loop();
  Standings all(keys.size());
  auto answer = answers->begin();
  for (const auto& [shard, here] : places) {
    for (std::size_t i = 0; i < here.size(); ++i) all[here[i]] = std::move((*answer)[i]);
    ++answer;
  }
  return all;
}

}  // namespace hearth::server
