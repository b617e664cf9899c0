// Dead fibers without a record: listing and removal.
#include "durable/fibers.hpp"
#include "durable/record_page.hpp"
#include "json/json_text.hpp"

#include <array>
#include <utility>

namespace hearth::durable {

using storage::Param;

namespace {

constexpr std::size_t kMostDeadListed = 100;
constexpr std::size_t kDeadListedByDefault = 50;
constexpr std::size_t kDeadSweptAtOnce = 100;  // a millisecond's work

}  // namespace

Result<std::string> Fibers::list_dead(std::string_view after, std::size_t limit) {
  if (limit > kMostDeadListed)
    return Error{Errc::kInvalidArgument, "a page has at most 100 records"};
  if (limit == 0) limit = kDeadListedByDefault;
  std::int64_t last = 0;
  if (!after.empty()) {
    const auto job = jobs_.find(JobKind::kFiber, after);
    if (!job || job->state != JobState::kDead)
      return Error{Errc::kNotFound, "no dead fiber has the id `after`"};
    last = job->seq;
  }
  RecordPage page(limit);
  jobs_.each("WHERE kind = 1 AND state = 2 AND due_at IS NULL AND seq > ? ORDER BY seq",
             std::array{Param(last)}, [&](const Job& job) { return page.add(dead_json(job)); });
  return page.take();
}

std::vector<std::string> Fibers::sweep() {
  if (!may_have_dead_) return {};
  std::vector<std::string> ids;
  for (Job& job :
       jobs_.expired(kKeepDeadFiber, now_ms() - settings_.keep_dead.count(), kDeadSweptAtOnce)) {
    if (job.ended_at_ms < 0) {  // an earlier server did not note when it died: counts from now
      job.ended_at_ms = now_ms();
      write(job);
      continue;
    }
    jobs_.erase(job.seq);
    ids.push_back(std::move(job.id));
  }
  if (!ids.empty()) may_have_dead_ = jobs_.has_any(JobKind::kFiber, JobState::kDead);
  return ids;
}

std::string Fibers::dead_json(const Job& job) {
  std::string json = R"({"id":)";
  append_json_string(json, job.id);
  json += R"(,"name":)";
  append_json_string(json, job.name);
  json += R"(,"snapshot":)" + jobs_.document(job.seq, JobPart::kSnapshot).value_or("null");
  json += R"(,"created_at":)" + std::to_string(job.created_at_ms);
  json += R"(,"attempts":)" + std::to_string(job.attempts);
  json += R"(,"last_error":)";
  append_json_string(json, jobs_.document(job.seq, JobPart::kLastError).value_or(""));
  return json + "}";
}

}  // namespace hearth::durable
