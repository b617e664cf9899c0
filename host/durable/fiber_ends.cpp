#include "durable/fiber_ends.hpp"

#include "base/assert.hpp"
#include "json/json_text.hpp"

#include <utility>

namespace hearth::durable {

namespace {

constexpr std::size_t kRecordsSweptAtOnce = 100;  // a millisecond's work

}  // namespace

FiberEnds::FiberEnds(storage::AgentDatabase& database, Jobs& jobs, FiberTable& table,
                     const Clock& clock, Random& random, const FiberSettings& settings)
    : jobs_(jobs),
      table_(table),
      clock_(clock),
      settings_(settings),
      tellings_(database, clock, random,
                {.kind = JobKind::kTelling,
                 .noun = "telling",
                 .lane = Lane::kKey,
                 .at_once = kMostTelling,
                 .most_dead = 0},
                settings.max_crashes),
      count_(jobs, JobKind::kFiber) {}

void FiberEnds::load() {
  has_settled_ = jobs_.has_any(JobKind::kFiber);  // an earlier instance may have settled them
  if (jobs_.has_any(JobKind::kTelling)) tellings_.load();
}

// ---- settling -----------------------------------------------------------------------------------

FiberChange FiberEnds::settle(Job job, const FiberOutcome& outcome, bool dead,
                              const Forget& forget) {
  FiberChange change = settle_alone(std::move(job), outcome, dead, forget);
  if (outcome.status == FiberStatus::kAborted) abort_inner(change, outcome, forget);
  return change;
}

FiberChange FiberEnds::settle_alone(Job job, const FiberOutcome& outcome, bool dead,
                                    const Forget& forget) {
  const bool had_ended = job.ended_at_ms.has_value();
  job.status = to_string(outcome.status);
  job.dead = dead;
  job.ended_at_ms = now_ms();
  job.next_at_ms = 0;
  job.interruptions = job.fatal_attempts = 0;
  job.keep.reset();
  job.state = JobState::kSettled;
  job.due_at_ms.reset();
  FiberRecord record = table_.with_documents(job);
  record.status = outcome.status;
  record.result = outcome.result;
  record.error = outcome.error;
  record.reason = outcome.reason;
  if (outcome.snapshot) record.snapshot = outcome.snapshot;
  if (outcome.metadata) record.metadata = outcome.metadata;
  FiberChange change{job.id, job.seq, outcome.status, record_json(record)};
  // Only now, for the values above may be too large for the memory that is left.
  if (had_ended) {
    tell_no_more(job.id);
  } else if (forget) {
    forget(job.id);
  }
  has_settled_ = true;
  const bool goes = job.is_brief() && !dead;
  const bool is_needed = job.parent && table_.is_open(*job.parent);
  parents_.erase(job.id);
  if (goes && !is_needed) {
    erase(job);
  } else {
    // The parent may have written a checkpoint while this one ran.
    if (is_needed) parents_.insert(*job.parent);
    // A fiber that may be revived needs the values of its children.
    if (!waits_for_decision(job)) remove_children(job.id);
    table_.put_outcome(job.seq, outcome);
    jobs_.update(job);
    if (!goes) tell(job.id);
  }
  table_.pass_lane(job.lane, now_ms());
  return change;
}

void FiberEnds::abort_inner(FiberChange& outer, const FiberOutcome& outcome, const Forget& forget) {
  table_.add_open(outer.id, outer.inner);
  if (outer.inner.empty()) return;
  std::string ids;
  for (std::size_t next = 0; next < outer.inner.size(); ++next) {
    const std::string id = outer.inner[next];
    if (auto job = table_.find(id)) {
      const FiberOutcome inner{.status = FiberStatus::kAborted, .error = outcome.error};
      (void)settle_alone(*std::move(job), inner, false, forget);
    }
    table_.add_open(id, outer.inner);
    ids += next == 0 ? "" : ",";
    append_json_string(ids, id);
  }
  outer.record.pop_back();
  outer.record += R"(,"inner":[)" + ids + "]}";
}

// ---- telling ------------------------------------------------------------------------------------

void FiberEnds::tell(const std::string& id) {
  Job job;
  job.id = id;
  job.key = id;
  job.created_at_ms = now_ms();
  tellings_.insert(job, {});
}

void FiberEnds::tell_no_more(const std::string& id) {
  (void)tellings_.remove(id);
}

std::optional<FiberChange> FiberEnds::next_untold() {
  const std::optional<Job> telling = tellings_.begin_next();
  if (!telling) return std::nullopt;
  auto job = table_.find(telling->id);
  HEARTH_ASSERT(job, "a telling has no row of its fiber");
  FiberChange change = table_.change_of(*std::move(job));
  change.row = telling->seq;
  return change;
}

void FiberEnds::told(std::string_view id, bool heard) {
  const TryOutcome outcome = heard ? TryOutcome::kDone : TryOutcome::kFailed;
  if (tellings_.ended(id, outcome).next != TryEnd::kDone) return;
  auto job = table_.find(id);
  if (!job) return;
  if (job->status == "completed" || job->status == "aborted") job->keep = "completed";
  if (job->status == "error" && (!job->dead || job->is_brief())) job->keep = "failed";
  jobs_.update(*job);
}

// ---- the number of records ----------------------------------------------------------------------

Result<void> FiberEnds::make_room() {
  while (!count_.below(settings_.max_records)) {
    if (!sweep()) return Error{Errc::kLimitExceeded, "this agent has too many fibers on record"};
  }
  return {};
}

void FiberEnds::erase(const Job& job) {
  jobs_.erase(job.seq);
  if (job.ended_at_ms && (job.dead || !job.is_brief())) tell_no_more(job.id);
  remove_children(job.id);
  count_.removed(1);
}

void FiberEnds::remove_children(std::string_view parent) {
  if (table_.remove_children(parent)) count_.removed_some();
}

void FiberEnds::drop_values(const std::string& id) {
  if (parents_.erase(id) > 0) remove_children(id);
}

bool FiberEnds::sweep() {
  if (!has_records()) return false;
  std::size_t erased = 0;
  for (const auto& [keep, how_long] : {std::pair("completed", settings_.keep_completed),
                                       std::pair("failed", settings_.keep_failed)}) {
    for (const Job& job : jobs_.expired(keep, now_ms() - how_long.count(), kRecordsSweptAtOnce)) {
      erase(job);
      if (job.dead) expired_.push_back(job.id);
      ++erased;
    }
  }
  return erased > 0;
}

}  // namespace hearth::durable
