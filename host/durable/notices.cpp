#include "durable/notices.hpp"

#include "base/assert.hpp"
#include "durable/back_off.hpp"
#include "durable/record_page.hpp"
#include "json/json_object_text.hpp"

#include <array>
#include <utility>

namespace hearth::durable {

using storage::Param;

namespace {

// The row's key: the callee. A class has no line break.
std::string key_of(const Notice& notice) {
  return notice.agent_class + "\n" + notice.name;
}
std::pair<std::string_view, std::string_view> callee_in(const Job& job) {
  HEARTH_ASSERT(job.key, "a notification without a callee");
  const std::string_view key = *job.key;
  const std::size_t end = key.find('\n');
  return {key.substr(0, end), key.substr(end + 1)};
}

}  // namespace

Notices::Notices(storage::AgentDatabase& database, const Clock& clock, Random& random,
                 int max_crashes)
    : CountedJobs(database, clock, random,
                  {.kind = JobKind::kNotice,
                   .lane = Lane::kKey,
                   .at_once = kMostRunning,
                   .max_crashes = max_crashes}) {}

// ---- for the agent's code -----------------------------------------------------------------------

Result<std::string> Notices::push(const Notice& notice) {
  if (!count().below(kMostNotices))
    return Error{Errc::kLimitExceeded, "too many notifications of this agent wait"};
  Job job;
  job.id = make_uuid(random());
  job.name = notice.method;
  job.key = key_of(notice);
  job.created_at_ms = now_ms();
  job.retry = {0, kFirstWait, kLongestWait};
  insert(job, notice.arguments);
  if (!notice.trace.empty()) jobs().put(job.seq, JobPart::kMetadata, notice.trace);
  return std::move(job.id);
}

std::string Notices::record_json(const Job& job) {
  const auto [agent_class, name] = callee_in(job);
  JsonObjectText json;
  json.text("id", job.id)
      .text("class", agent_class)
      .text("name", name)
      .text("method", job.name)
      .json("arguments", jobs().document(job.seq, JobPart::kInput).value_or("[]"))
      .text("state", state_of(job))
      .number("created_at", job.created_at_ms)
      .number("attempts", job.claims)
      .text_or_null("last_error", last_error(job));
  return json.take();
}

Result<std::string> Notices::list(std::string_view after, std::size_t limit) {
  std::int64_t behind = 0;
  if (!after.empty()) {
    const auto last = jobs().find(JobKind::kNotice, after);
    if (!last) return Error{Errc::kNotFound, "no notification has the id `after`"};
    behind = last->seq;
  }
  RecordPage page(limit);
  jobs().each("WHERE kind = 5 AND seq > ?1 ORDER BY seq", std::array{Param(behind)},
              [&](const Job& job) { return page.add(record_json(job)); });
  return page.take();
}

Result<void> Notices::remove(std::string_view id) {
  const auto job = jobs().find(JobKind::kNotice, id);
  if (!job) return Error{Errc::kNotFound, "no notification has this id"};
  CountedJobs::remove(*job);
  return {};
}

// ---- delivery -----------------------------------------------------------------------------------

std::optional<NoticeDelivery> Notices::begin_next() {
  std::optional<Job> job = begin();
  if (!job) return std::nullopt;
  const auto [agent_class, name] = callee_in(*job);
  NoticeDelivery delivery;
  delivery.row = job->seq;
  delivery.notice = {std::string(agent_class), std::string(name), job->name,
                     jobs().document(job->seq, JobPart::kInput).value_or("[]"),
                     jobs().document(job->seq, JobPart::kMetadata).value_or("")};
  delivery.id = std::move(job->id);
  return delivery;
}

TryEnd Notices::ended(std::string_view id, const NoticeOutcome& outcome) {
  return end(id, outcome.delivered ? TryOutcome::kDone : TryOutcome::kFailed, outcome.error).next;
}

std::optional<std::int64_t> Notices::failed(Job& job) {
  ++job.failures;
  if (now_ms() - job.created_at_ms >= std::chrono::milliseconds(kGiveUpAfter).count())
    return std::nullopt;
  return now_ms() + back_off(job.failures, kFirstWait, kLongestWait, random()).count();
}

}  // namespace hearth::durable
