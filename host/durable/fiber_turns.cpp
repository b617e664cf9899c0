#include "durable/fiber_turns.hpp"

#include <algorithm>

namespace hearth::durable {

void FiberTurns::recovers(const Job& job) {
  if (job.is_turn()) news_.push_back({job.id, std::max(job.claims, 1)});
}

void FiberTurns::given_up(const Job& job, std::string_view why) {
  if (!job.is_turn()) return;
  news_.push_back({job.id, 0, std::string(why)});
  ids_.reset();
  if (table_.has_later_turn(job.seq)) jobs_.put(job.seq, JobPart::kPassed, "");
}

const std::vector<std::string>& FiberTurns::ids() {
  if (!ids_) ids_ = table_.given_up_turns();
  return *ids_;
}

void FiberTurns::begins() {
  if (ids().empty()) return;
  table_.pass_given_up_turns();
  ids_ = std::vector<std::string>();
}

std::vector<TurnNews> FiberTurns::standing() {
  std::vector<TurnNews> news;
  for (const std::string& id : ids()) {
    const auto job = table_.find(id);
    if (job && job->dead && job->is_turn())
      news.push_back({id, 0, jobs_.document(job->seq, JobPart::kError).value_or("")});
  }
  for (const Job& job : table_.recovered_turns()) news.push_back({job.id, job.claims});
  return news;
}

}  // namespace hearth::durable
