#include "durable/fiber_records.hpp"

#include "durable/record_page.hpp"

#include <utility>

namespace hearth::durable {

namespace {

constexpr std::size_t kMostRecordsListed = 100;
constexpr std::size_t kRecordsListedByDefault = 50;
constexpr std::size_t kMostRemoved = 500;
constexpr std::size_t kRemovedByDefault = 100;

Error bad_filter(std::string why) {
  return Error{Errc::kInvalidArgument, std::move(why)};
}

}  // namespace

// ---- reading ------------------------------------------------------------------------------------

Result<std::string> FiberRecords::inspect(std::string_view id, std::string_view key) {
  auto job = table_.find_one(id, key);
  if (job.has_error()) return job.error();
  return recovery_.change_of(*std::move(job)).record;
}

Result<std::string> FiberRecords::list(const FiberFilter& filter) {
  if (filter.limit > kMostRecordsListed) return bad_filter("a page has at most 100 records");
  RecordPage page(filter.limit == 0 ? kRecordsListedByDefault : filter.limit);
  const auto listed = table_.each(filter, [&](Job& job) {
    const FiberNow now = recovery_.now_of(job.id);
    const auto bit = static_cast<std::uint32_t>(status_of(job, now));
    if (filter.statuses != 0 && (bit & filter.statuses) == 0) return true;
    return page.add(table_.change_of(std::move(job), now).record);
  });
  if (listed.has_error()) return listed.error();
  return page.take();
}

Result<std::uint64_t> FiberRecords::remove(const FiberFilter& filter) {
  if (filter.limit > kMostRemoved) return bad_filter("at most 500 records are removed at once");
  FiberFilter bounded = filter;
  if (bounded.limit == 0) bounded.limit = kRemovedByDefault;
  const std::vector<Job> gone = table_.to_remove(bounded);
  for (const Job& job : gone) ends_.erase(job);
  return gone.size();
}

// ---- decisions ----------------------------------------------------------------------------------

Result<FiberChange> FiberRecords::cancel(std::string_view id, std::string_view key,
                                         std::string_view reason) {
  auto job = table_.find_one(id, key);
  if (job.has_error()) return job.error();
  if (job->ended_at_ms) return Error{Errc::kNotFound, "this fiber is settled already"};
  return recovery_.settle(*std::move(job),
                          {.status = FiberStatus::kAborted, .error = cut_job_error(reason)});
}

Result<FiberChange> FiberRecords::resolve(std::string_view id, std::string_view outcome_json,
                                          Decides who) {
  auto job = table_.find_one(id, "");
  if (job.has_error()) return job.error();
  if (!may_decide(*job, who))
    return Error{Errc::kNotFound, "this fiber is neither interrupted nor dead"};
  if (outcome_json.empty())
    return Error{Errc::kInvalidArgument, "an outcome is needed to resolve a fiber"};
  auto outcome = parse_outcome(outcome_json, settings_.max_json_bytes);
  if (outcome.has_error()) return outcome.error();
  return recovery_.settle(*std::move(job), *outcome);
}

Result<void> FiberRecords::retry(std::string_view id, Decides who) {
  auto job = table_.find_one(id, "");
  if (job.has_error()) return job.error();
  if (!may_decide(*job, who))
    return Error{Errc::kNotFound, "this fiber is neither interrupted nor dead"};
  ends_.tell_no_more(job->id);
  for (const JobPart part :
       {JobPart::kResult, JobPart::kError, JobPart::kLastError, JobPart::kPassed, JobPart::kReason})
    jobs_.put(job->seq, part, std::nullopt);
  // An open one that is due has its lane.
  const bool is_parked = job->ended_at_ms && table_.is_taken(job->lane);
  if (!job->ended_at_ms) job->next_at_ms = 0;
  if (job->ended_at_ms || !is_pending(*job)) job->status = to_string(FiberStatus::kRecovering);
  job->dead = job->has_failed = false;
  job->attempts = job->claims = job->failures = job->interruptions = job->fatal_attempts = 0;
  job->ended_at_ms.reset();
  job->keep.reset();
  job->wait(unix_millis(clock_.wall_now()));
  if (is_parked) job->due_at_ms.reset();
  recovery_.write(*job);
  return {};
}

}  // namespace hearth::durable
