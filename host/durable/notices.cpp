#include "durable/notices.hpp"

#include "base/assert.hpp"
#include "durable/back_off.hpp"
#include "json/json_text.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace hearth::durable {

using storage::Param;

namespace {

constexpr std::size_t kMaxNoticePageBytes = std::size_t{4} << 20;
constexpr std::size_t kMaxNoticeErrorBytes = 4096;
constexpr std::chrono::milliseconds kNoticeRetryBase{1'000};
constexpr std::chrono::milliseconds kNoticeRetryCap{300'000};

// Of the callee, as the row's key. A class has no line break.
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

void Notices::load() {
  if (!jobs_.exists()) return;
  jobs_.release(JobKind::kNotice, false, now_ms());
  jobs_.bound_waits(JobKind::kNotice, JobState::kWaiting, now_ms(), kNoticeRetryCap);
  find_next();
}

// Those behind the first for their callee have no due_at.
void Notices::find_next() {
  const auto at = jobs_.number(
      "SELECT min(due_at) FROM cf_agents_jobs WHERE kind = 5 AND state = 0 AND due_at IS NOT NULL",
      {});
  next_.reset();
  if (at) next_ = DueTime(clock_, std::min(*at, now_ms() + (kNoticeRetryCap * 5 / 4).count()));
}

void Notices::advance(const std::string& callee) {
  auto job = jobs_.first("WHERE key = ?1 AND kind = 5 AND state = 0 ORDER BY seq LIMIT 1",
                         std::array{Param(std::string_view(callee))});
  if (job && !job->due_at_ms) {
    job->wait();
    jobs_.update(*job);
  }
  find_next();
}

// ---- for the agent's code -----------------------------------------------------------------------

Result<std::string> Notices::push(const Notice& notice) {
  if (jobs_.count_bound(JobKind::kNotice) >= kMostNotices &&
      jobs_.count(JobKind::kNotice) >= kMostNotices)
    return Error{Errc::kLimitExceeded, "too many notifications of this agent wait"};
  Job job;
  job.kind = JobKind::kNotice;
  job.id = make_uuid(random_);
  job.name = notice.method;
  job.key = key_of(notice);
  job.created_at_ms = now_ms();
  job.retry = {0, kNoticeRetryBase, kNoticeRetryCap};
  const bool is_first = !jobs_.number(
      "SELECT 1 FROM cf_agents_jobs WHERE key = ?1 AND kind = 5 AND +state < 2 LIMIT 1",
      std::array{Param(std::string_view(*job.key))});
  if (is_first) job.wait();
  jobs_.insert(job);
  jobs_.put(job.seq, JobPart::kInput, notice.arguments);
  if (!notice.trace.empty()) jobs_.put(job.seq, JobPart::kMetadata, notice.trace);
  if (is_first) find_next();
  return std::move(job.id);
}

std::string Notices::record_json(const Job& job) {
  const auto [agent_class, name] = callee_in(job);
  const bool running = std::ranges::find(running_, job.id) != running_.end();
  std::string json = R"({"id":)";
  append_json_string(json, job.id);
  json += R"(,"class":)";
  append_json_string(json, agent_class);
  json += R"(,"name":)";
  append_json_string(json, name);
  json += R"(,"method":)";
  append_json_string(json, job.name);
  json += R"(,"arguments":)" + jobs_.document(job.seq, JobPart::kInput).value_or("[]");
  json += R"(,"state":")";
  json += job.dead ? "dead" : running ? "running" : "waiting";
  json += R"(","created_at":)" + std::to_string(job.created_at_ms);
  json += R"(,"attempts":)" + std::to_string(job.claims);
  json += R"(,"last_error":)";
  if (const auto error = jobs_.document(job.seq, JobPart::kLastError)) {
    append_json_string(json, *error);
  } else {
    json += "null";
  }
  return json + "}";
}

Result<std::string> Notices::list(std::string_view after, std::size_t limit) {
  std::int64_t behind = 0;
  if (!after.empty()) {
    const auto last = jobs_.find(JobKind::kNotice, after);
    if (!last) return Error{Errc::kNotFound, "no notification has the id `after`"};
    behind = last->seq;
  }
  std::string page = "[";
  std::size_t count = 0;
  jobs_.each("WHERE kind = 5 AND seq > ?1 ORDER BY seq", std::array{Param(behind)},
             [&](const Job& job) {
               if (count++ > 0) page += ',';
               page += record_json(job);
               return count < limit && page.size() < kMaxNoticePageBytes;
             });
  return page + "]";
}

Result<void> Notices::remove(std::string_view id) {
  const auto job = jobs_.find(JobKind::kNotice, id);
  if (!job) return Error{Errc::kNotFound, "no notification has this id"};
  jobs_.erase(job->seq);
  std::erase(running_, id);
  advance(job->key.value_or(std::string()));
  return {};
}

// ---- delivery -----------------------------------------------------------------------------------

void Notices::bury(Job& job, std::string_view why) {
  job.state = JobState::kDead;
  job.due_at_ms.reset();
  job.dead = true;
  jobs_.put(job.seq, JobPart::kLastError, why);
  jobs_.update(job);
}

std::optional<NoticeDelivery> Notices::begin_next() {
  while (due()) {
    auto job = jobs_.first_due(JobKind::kNotice, JobState::kWaiting);
    HEARTH_ASSERT(job, "a notification is due, and none waits");
    if (job->interruptions >= kMostInterruptions) {
      bury(*job, "the server crashed again and again in its middle");
      dead_.push_back(job->id);
      advance(job->key.value_or(std::string()));
      continue;
    }
    ++job->claims;
    ++job->interruptions;  // until its end is known
    if (job->interruptions > 1)
      job->next_at_ms =
          now_ms() +
          back_off(job->interruptions - 1, kNoticeRetryBase, kNoticeRetryCap, random_).count();
    job->claim();
    jobs_.update(*job);
    running_.push_back(job->id);
    find_next();
    const auto [agent_class, name] = callee_in(*job);
    NoticeDelivery delivery;
    delivery.notice = {std::string(agent_class), std::string(name), job->name,
                       jobs_.document(job->seq, JobPart::kInput).value_or("[]"),
                       jobs_.document(job->seq, JobPart::kMetadata).value_or("")};
    delivery.id = std::move(job->id);
    return delivery;
  }
  return std::nullopt;
}

NoticeEnd Notices::ended(std::string_view id, const NoticeOutcome& outcome) {
  if (std::erase(running_, id) == 0) return NoticeEnd::kRemoved;
  auto job = jobs_.find(JobKind::kNotice, id);
  HEARTH_ASSERT(job, "a notification on its way is not in its table");
  if (outcome.delivered) {
    jobs_.erase(job->seq);
    advance(job->key.value_or(std::string()));
    return NoticeEnd::kDelivered;
  }
  const std::string_view error = std::string_view(outcome.error).substr(0, kMaxNoticeErrorBytes);
  ++job->failures;
  job->interruptions = 0;
  if (now_ms() - job->created_at_ms >= std::chrono::milliseconds(kGiveUpAfter).count()) {
    bury(*job, error);
    advance(job->key.value_or(std::string()));
    return NoticeEnd::kDead;
  }
  job->next_at_ms =
      now_ms() + back_off(job->failures, kNoticeRetryBase, kNoticeRetryCap, random_).count();
  job->wait();
  jobs_.put(job->seq, JobPart::kLastError, error);
  jobs_.update(*job);
  find_next();
  return NoticeEnd::kRetry;
}

void Notices::interrupt_on_purpose() {
  for (const std::string& id : std::exchange(running_, {})) {
    auto job = jobs_.find(JobKind::kNotice, id);
    HEARTH_ASSERT(job, "a notification on its way is not in its table");
    --job->claims;
    --job->interruptions;
    job->next_at_ms = 0;
    job->wait();
    jobs_.update(*job);
  }
  find_next();
}

std::vector<std::string> Notices::take_dead() {
  return std::exchange(dead_, {});
}

bool Notices::due() const {
  return running_.size() < kMostRunning && next_ && next_->reached(Now(clock_));
}

Wake Notices::wake() const {
  Wake wake;
  wake.working = !running_.empty() || due();
  if (next_ && !wake.working) wake.at_ms = next_->wall_ms(Now(clock_));
  return wake;
}

}  // namespace hearth::durable
