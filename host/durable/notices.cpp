#include "durable/notices.hpp"

#include "base/assert.hpp"
#include "durable/record_page.hpp"
#include "json/json_object_text.hpp"

#include <utility>

namespace hearth::durable {

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
                   .noun = "notification",
                   .lane = Lane::kKey,
                   .at_once = kMostRunning},
                  max_crashes) {}

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
      .text_or_null("last_error", jobs().document(job.seq, JobPart::kLastError));
  return json.take();
}

Result<std::string> Notices::list(std::string_view after, std::size_t limit) {
  const auto place = place_after(after);
  if (!place) return place.error();
  RecordPage page(limit);
  jobs().each("WHERE kind = 5 AND seq > ?1 ORDER BY seq", storage::params_of(*place),
              [&](const Job& job) { return page.add(record_json(job)); });
  return page.take();
}

std::optional<NoticeDelivery> Notices::next_delivery() {
  std::optional<Begun> job = begin_next();
  if (!job) return std::nullopt;
  const auto [agent_class, name] = callee_in(*job);
  NoticeDelivery delivery;
  delivery.row = job->seq;
  delivery.notice = {std::string(agent_class), std::string(name), job->name, std::move(job->input),
                     jobs().document(job->seq, JobPart::kMetadata).value_or("")};
  delivery.id = std::move(job->id);
  return delivery;
}

std::optional<std::int64_t> Notices::next_after_failure(const Job& job) {
  if (now_ms() - job.created_at_ms >= std::chrono::milliseconds(kGiveUpAfter).count())
    return std::nullopt;
  return CountedJobs::next_after_failure(job);
}

}  // namespace hearth::durable
