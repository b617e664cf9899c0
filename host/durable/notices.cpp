#include "durable/notices.hpp"

#include "base/assert.hpp"
#include "durable/back_off.hpp"
#include "durable/record_page.hpp"
#include "json/json_text.hpp"

#include <array>
#include <utility>

namespace hearth::durable {

using storage::Param;

namespace {

constexpr std::chrono::milliseconds kNoticeRetryBase{1'000};
constexpr std::chrono::milliseconds kNoticeRetryCap{300'000};
constexpr std::string_view kNoticeCrashedAgain =
    "the server crashed again and again during its delivery";

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

Notices::Notices(storage::AgentDatabase& database, const Clock& clock, Random& random)
    : CountedTries(database, clock, random,
                   {.kind = JobKind::kNotice,
                    .most = kMostInterruptions,
                    .why = kNoticeCrashedAgain,
                    .base = kNoticeRetryBase,
                    .cap = kNoticeRetryCap}),
      line_(clock, *this, kMostRunning) {}

void Notices::load() {
  if (jobs().exists()) CountedTries::load();
}

void Notices::close() {
  line_.close();
  jobs().close();
}

void Notices::advance(const std::string& callee) {
  auto job = jobs().first("WHERE key = ?1 AND kind = 5 AND state = 0 ORDER BY seq LIMIT 1",
                          std::array{Param(std::string_view(callee))});
  if (job && !job->due_at_ms) {
    job->wait();
    jobs().update(*job);
  }
  line_.changed();
}

// ---- for the agent's code -----------------------------------------------------------------------

Result<std::string> Notices::push(const Notice& notice) {
  if (jobs().count_bound(JobKind::kNotice) >= kMostNotices &&
      jobs().count(JobKind::kNotice) >= kMostNotices)
    return Error{Errc::kLimitExceeded, "too many notifications of this agent wait"};
  Job job;
  job.kind = JobKind::kNotice;
  job.id = make_uuid(random());
  job.name = notice.method;
  job.key = key_of(notice);
  job.created_at_ms = now_ms();
  job.retry = {0, kNoticeRetryBase, kNoticeRetryCap};
  const bool is_first = !jobs().number(
      "SELECT 1 FROM cf_agents_jobs WHERE key = ?1 AND kind = 5 AND +state < 2 LIMIT 1",
      std::array{Param(std::string_view(*job.key))});
  if (is_first) job.wait();
  jobs().insert(job);
  jobs().put(job.seq, JobPart::kInput, notice.arguments);
  if (!notice.trace.empty()) jobs().put(job.seq, JobPart::kMetadata, notice.trace);
  if (is_first) line_.changed();
  return std::move(job.id);
}

std::string Notices::record_json(const Job& job) {
  const auto [agent_class, name] = callee_in(job);
  const bool running = line_.is_claimed(job.id);
  std::string json = R"({"id":)";
  append_json_string(json, job.id);
  json += R"(,"class":)";
  append_json_string(json, agent_class);
  json += R"(,"name":)";
  append_json_string(json, name);
  json += R"(,"method":)";
  append_json_string(json, job.name);
  json += R"(,"arguments":)" + jobs().document(job.seq, JobPart::kInput).value_or("[]");
  json += R"(,"state":")";
  json += job.dead ? "dead" : running ? "running" : "waiting";
  json += R"(","created_at":)" + std::to_string(job.created_at_ms);
  json += R"(,"attempts":)" + std::to_string(job.claims);
  json += R"(,"last_error":)";
  if (const auto error = jobs().document(job.seq, JobPart::kLastError)) {
    append_json_string(json, *error);
  } else {
    json += "null";
  }
  return json + "}";
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
  jobs().erase(job->seq);
  advance(job->key.value_or(std::string()));
  return {};
}

// ---- delivery -----------------------------------------------------------------------------------

void Notices::give_up(Job& job, std::string_view why) {
  bury(job, why);
  advance(job.key.value_or(std::string()));
}

std::optional<NoticeDelivery> Notices::begin_next() {
  std::optional<Job> job = line_.claim();
  if (!job) return std::nullopt;
  const auto [agent_class, name] = callee_in(*job);
  NoticeDelivery delivery;
  delivery.notice = {std::string(agent_class), std::string(name), job->name,
                     jobs().document(job->seq, JobPart::kInput).value_or("[]"),
                     jobs().document(job->seq, JobPart::kMetadata).value_or("")};
  delivery.id = std::move(job->id);
  return delivery;
}

NoticeEnd Notices::ended(std::string_view id, const NoticeOutcome& outcome) {
  line_.take(id);
  auto job = claimed_row(id);
  if (!job) return NoticeEnd::kRemoved;
  if (outcome.delivered) {
    jobs().erase(job->seq);
    advance(job->key.value_or(std::string()));
    return NoticeEnd::kDelivered;
  }
  ++job->failures;
  if (now_ms() - job->created_at_ms >= std::chrono::milliseconds(kGiveUpAfter).count()) {
    job->interruptions = 0;
    give_up(*job, outcome.error);
    return NoticeEnd::kDead;
  }
  const auto wait = back_off(job->failures, kNoticeRetryBase, kNoticeRetryCap, random());
  try_again(*job, now_ms() + wait.count(), outcome.error);
  return NoticeEnd::kRetry;
}

}  // namespace hearth::durable
