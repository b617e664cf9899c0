#include "runtime/object_places.hpp"

#include <utility>

namespace hearth::runtime {

// Which object leaves. The asker's own thread.
struct ObjectPlaces::Question {
  ShardLoop& loop;  // the asker's
  std::function<void(Answer)> answer;
  std::size_t unanswered;  // members that have not said what is idle
  TimerId patience = 0;
  std::optional<SteadyTime> idle_since = {};
  Place oldest = {};
  bool is_chosen = false;
};

bool ObjectPlaces::take() {
  std::size_t taken = taken_.load(std::memory_order_relaxed);
  while (taken < max_) {
    if (taken_.compare_exchange_weak(taken, taken + 1, std::memory_order_relaxed)) return true;
  }
  return false;
}

ObjectPlaces::Answer ObjectPlaces::ask(ShardLoop& loop, std::function<void(Answer)> later) {
  if (members_.size() == 1)
    return members_.front().member->spare_object() ? Answer::kPlace : Answer::kNone;
  const auto question = std::make_shared<Question>(
      Question{.loop = loop, .answer = std::move(later), .unanswered = members_.size()});
  question->patience =
      loop.call_at(loop.clock().steady_now() + kPatience, [question] { choose(question); });
  for (const Place& place : members_) {
    place.loop->post([question, place] {
      const auto idle_since = place.member->object_idle_since();
      question->loop.post([question, place, idle_since] { note(question, place, idle_since); });
    });
  }
  return Answer::kLater;
}

void ObjectPlaces::note(const std::shared_ptr<Question>& question, const Place& place,
                        std::optional<SteadyTime> idle_since) {
  if (question->is_chosen) return;
  if (idle_since && *idle_since < question->idle_since.value_or(SteadyTime::max())) {
    question->idle_since = idle_since;
    question->oldest = place;
  }
  if (--question->unanswered == 0) choose(question);
}

void ObjectPlaces::choose(const std::shared_ptr<Question>& question) {
  if (std::exchange(question->is_chosen, true)) return;
  question->loop.cancel_timer(question->patience);
  if (!question->idle_since) return question->answer(Answer::kNone);
  const Place oldest = question->oldest;
  oldest.loop->post([question, oldest] {
    const Answer answer = oldest.member->spare_object() ? Answer::kPlace : Answer::kLater;
    question->loop.post([question, answer] { question->answer(answer); });
  });
}

}  // namespace hearth::runtime
