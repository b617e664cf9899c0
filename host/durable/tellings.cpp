#include "durable/tellings.hpp"

#include "durable/back_off.hpp"

#include <string>

namespace hearth::durable {

Tellings::Tellings(storage::AgentDatabase& database, const Clock& clock, Random& random,
                   int max_crashes)
    : CountedJobs(database, clock, random,
                  {.kind = JobKind::kTelling,
                   .lane = Lane::kKey,
                   .at_once = kMostTelling,
                   .max_crashes = max_crashes}) {}

void Tellings::add(std::string_view fiber) {
  Job job;
  job.id = fiber;
  job.key = job.id;
  job.created_at_ms = now_ms();
  insert(job, {});
}

void Tellings::drop(std::string_view fiber) {
  if (const auto job = jobs().find(JobKind::kTelling, fiber)) remove(*job);
}

bool Tellings::ended(std::string_view fiber, bool heard) {
  const auto outcome = heard ? TryOutcome::kDone : TryOutcome::kFailed;
  return end(fiber, outcome, std::nullopt).next == TryEnd::kDone;
}

std::optional<std::int64_t> Tellings::failed(Job& job) {
  ++job.failures;
  return now_ms() + back_off(job.failures, kFirstWait, kLongestWait, random()).count();
}

void Tellings::bury(Job& job, std::string_view /*why*/) {
  remove(job);
}

}  // namespace hearth::durable
