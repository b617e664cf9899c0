#include "runtime/object_places.hpp"

#include <utility>

namespace hearth::runtime {

// Finds the object that leaves. Only the asker's thread uses it, except is_settled.
struct ObjectPlaces::Question {
  ShardLoop& loop;  // the asker's
  std::function<void(Answer)> answer;
  std::size_t unanswered = 0;  // members that have not answered
  TimerId patience = 0;
  std::optional<SteadyTime> idle_since = {};
  Place* oldest = nullptr;
  bool is_chosen = false;
  // Set once: by the chosen member before it spares its object, or by the asker when it gives up.
  // The second of them does nothing.
  std::atomic<bool> is_settled = false;
};

// An earlier posted task that still waits may reset this time too early. Then the wait for a
// blocked shard happens once more.
void ObjectPlaces::Place::post(SteadyTime now, std::function<void()> task) {
  SteadyTime none = SteadyTime::max();
  (void)posted_at.compare_exchange_strong(none, now);
  loop.post([this, task = std::move(task)] {
    posted_at = SteadyTime::max();
    task();
  });
}

bool ObjectPlaces::Place::is_silent(SteadyTime now) const {
  return now - kPatience >= posted_at.load();
}

bool ObjectPlaces::take() {
  std::size_t taken = taken_;
  while (taken < max_) {
    if (taken_.compare_exchange_weak(taken, taken + 1)) return true;
  }
  return false;
}

ObjectPlaces::Answer ObjectPlaces::ask(ShardLoop& loop, std::function<void(Answer)> later) {
  const auto question = std::make_shared<Question>(loop, std::move(later));
  const SteadyTime now = loop.clock().steady_now();
  Place* own = nullptr;
  for (Place& place : members_) {
    if (&place.loop == &loop) {
      own = &place;
    } else if (!place.is_silent(now)) {
      ++question->unanswered;
      place.post(now, [question, &place] {
        const auto idle_since = place.member.object_idle_since();
        question->loop.post([question, &place, idle_since] { note(question, place, idle_since); });
      });
    }
  }
  if (question->unanswered == 0)
    return own->member.spare_object(when_left(question)) ? Answer::kLater : Answer::kNone;
  if (const auto idle_since = own->member.object_idle_since()) {
    question->idle_since = idle_since;
    question->oldest = own;
  }
  question->patience = loop.call_at(now + kPatience, [question] { choose(question); });
  return Answer::kLater;
}

std::function<void()> ObjectPlaces::when_left(const std::shared_ptr<Question>& question) {
  return [question] {
    question->loop.post([question] {
      question->loop.cancel_timer(question->patience);
      question->answer(Answer::kPlace);
    });
  };
}

void ObjectPlaces::note(const std::shared_ptr<Question>& question, Place& place,
                        std::optional<SteadyTime> idle_since) {
  if (question->is_chosen) return;
  if (idle_since && *idle_since < question->idle_since.value_or(SteadyTime::max())) {
    question->idle_since = idle_since;
    question->oldest = &place;
  }
  if (--question->unanswered == 0) choose(question);
}

void ObjectPlaces::choose(const std::shared_ptr<Question>& question) {
  if (std::exchange(question->is_chosen, true)) return;
  ShardLoop& loop = question->loop;
  loop.cancel_timer(question->patience);
  if (!question->idle_since) return question->answer(Answer::kNone);
  const SteadyTime now = loop.clock().steady_now();
  question->patience = loop.call_at(now + kPatience, [question] {
    if (!question->is_settled.exchange(true)) question->answer(Answer::kLater);
  });
  Place& oldest = *question->oldest;
  oldest.post(now, [question, &oldest] {
    if (question->is_settled.exchange(true)) return;
    if (oldest.member.spare_object(when_left(question))) return;
    question->loop.post([question] {
      question->loop.cancel_timer(question->patience);
      question->answer(Answer::kLater);
    });
  });
}

}  // namespace hearth::runtime
