#include "durable/fiber_turns.hpp"

#include <algorithm>

namespace hearth::durable {

namespace {

#define HEARTH_OPEN_FIBERS "INDEXED BY cf_agents_jobs_open WHERE kind = 2 AND ended_at IS NULL AND "
#define HEARTH_TURN "type IN ('turn', 'kept turn')"
#define HEARTH_GIVEN_UP_TURNS "WHERE kind = 2 AND dead AND " HEARTH_TURN
static_assert(FiberTurns::kMostStanding == 20, "the texts say so");
static_assert(static_cast<int>(JobPart::kPassed) == 8, "the texts say so");

}  // namespace

void FiberTurns::recovers(const Job& job) {
  if (job.is_turn()) news_.push_back({job.id, std::max(job.claims, 1)});
}

void FiberTurns::given_up(const Job& job, std::string_view why) {
  if (!job.is_turn()) return;
  news_.push_back({job.id, 0, std::string(why)});
  ids_.reset();
  if (jobs_.first(HEARTH_OPEN_FIBERS "seq > ? AND " HEARTH_TURN, job.seq))
    jobs_.put(job.seq, JobPart::kPassed, "");
}

const std::vector<std::string>& FiberTurns::ids() {
  if (ids_) return *ids_;
  ids_.emplace();
  for (Job& job :
       jobs_.all(HEARTH_GIVEN_UP_TURNS " AND NOT EXISTS (SELECT 1 FROM cf_agents_job_documents "
                                       "WHERE job = seq AND part = 8) ORDER BY seq DESC LIMIT 20",
                 {}))
    ids_->push_back(std::move(job.id));
  std::ranges::reverse(*ids_);
  return *ids_;
}

void FiberTurns::begins() {
  if (ids().empty()) return;
  jobs_.run(
      "INSERT OR IGNORE INTO cf_agents_job_documents(job, part, body) "
      "SELECT seq, 8, '' FROM cf_agents_jobs " HEARTH_GIVEN_UP_TURNS,
      {});
  ids_ = std::vector<std::string>();
}

std::vector<TurnNews> FiberTurns::standing() {
  std::vector<TurnNews> news;
  for (const std::string& id : ids()) {
    const auto job = jobs_.find(JobKind::kFiber, id);
    if (job && job->dead && job->is_turn())
      news.push_back({id, 0, jobs_.document(job->seq, JobPart::kError).value_or("")});
  }
  auto recovered =
      jobs_.all(HEARTH_OPEN_FIBERS "claims > 0 AND " HEARTH_TURN " ORDER BY seq DESC LIMIT 20", {});
  std::ranges::reverse(recovered);
  for (const Job& job : recovered) news.push_back({job.id, job.claims});
  return news;
}

}  // namespace hearth::durable
