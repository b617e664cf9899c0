#include "durable/queue.hpp"

#include "base/assert.hpp"
#include "base/utf8.hpp"
#include "durable/back_off.hpp"
#include "durable/fiber_record.hpp"
#include "json/json_scanner.hpp"
#include "json/json_text.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace hearth::durable {

using storage::Param;

namespace {

constexpr std::size_t kMaxItemCallbackBytes = 256;
constexpr std::size_t kMaxItemErrorBytes = 4096;
constexpr std::size_t kMostItemsListed = 1'000;
constexpr std::size_t kItemsListedByDefault = 100;
constexpr std::size_t kMaxItemPageBytes = std::size_t{4} << 20;
constexpr std::size_t kRemovedAtOnce = 1'000;

// After the second interruption in a row and each further one. The first need not be the item's
// fault: the item is delivered again at once.
constexpr std::chrono::milliseconds kInterruptedBase{1'000};
constexpr std::chrono::milliseconds kInterruptedCap{300'000};

Error refused(const char* why) {
  return Error{Errc::kInvalidArgument, why};
}

Error not_found(const char* what) {
  return Error{Errc::kNotFound, what};
}

// Whether the payload is an object with this member of this value.
bool has_member(std::string_view payload, const QueueFilter& filter) {
  std::array<WantedMember, 1> wanted{{{filter.member, {}}}};
  if (!scan_json_object(payload, wanted) || wanted[0].json.empty()) return false;
  return same_json(wanted[0].json, filter.value);
}

// In the order of delivery. ?1 callback, ?2 dead or null, ?3 only or null, ?4 except or null, ?5
// after.
#define HEARTH_QUEUE_CONDITION                                                            \
  "WHERE kind = 4 AND seq > ?5 AND (?1 = '' OR name = ?1) AND (?2 IS NULL OR dead = ?2) " \
  "AND (?3 IS NULL OR seq = ?3) AND (?4 IS NULL OR seq <> ?4)"
constexpr std::string_view kItems = HEARTH_QUEUE_CONDITION " ORDER BY seq";

// Of Queue::Query.
template <class Query>
std::array<Param, 5> params_of(const Query& query) {
  const auto number = [](const auto& value) {
    return value ? Param(static_cast<std::int64_t>(*value)) : Param(nullptr);
  };
  return {Param(query.callback), number(query.dead), number(query.only), number(query.except),
          Param(query.after)};
}

}  // namespace

Queue::Queue(storage::AgentDatabase& database, const Clock& clock, Random& random,
             QueueSettings settings)
    : jobs_(database), clock_(clock), random_(random), settings_(settings) {}

void Queue::load() {
  if (!jobs_.exists()) return;
  jobs_.release(JobKind::kItem, false, now_ms());
  find_head();
}

// The head alone has a due_at: what stands behind it is no reason to wake.
void Queue::find_head() {
  head_.reset();
  if (running_) return;
  auto job = jobs_.first_due(JobKind::kItem, JobState::kWaiting);
  if (!job) {
    job = jobs_.first("WHERE kind = 4 AND state = 0 AND due_at IS NULL ORDER BY seq LIMIT 1", {});
    if (!job) return;
    job->wait();
    jobs_.update(*job);
  }
  // No wait that we would set is longer: one that is was written by a clock that has been set back
  // since.
  const std::int64_t longest = std::max<std::int64_t>(
      job->retry.cap.count(), (kInterruptedCap + kInterruptedCap / 4).count());
  head_ = Head{job->seq, DueTime(clock_, std::min(job->next_at_ms, now_ms() + longest))};
}

bool Queue::runs(const Job& job) const {
  return running_ && !running_->removed && running_->seq == job.seq;
}

std::string Queue::payload_of(const Job& job) {
  return jobs_.document(job.seq, JobPart::kInput).value_or("null");
}

// ---- for the agent's code -----------------------------------------------------------------------

Result<void> Queue::make_room() {
  if (!size_) size_ = jobs_.count_bound(JobKind::kItem);
  if (*size_ >= settings_.max_items && !size_is_exact_) {
    size_ = jobs_.count(JobKind::kItem);
    size_is_exact_ = true;
  }
  if (*size_ < settings_.max_items) return {};
  return Error{Errc::kLimitExceeded, "this agent's queue is full"};
}

void Queue::forget_rows(std::size_t count) {
  if (size_) *size_ -= std::min(*size_, count);
}

Result<Queue::Pushed> Queue::push(const QueueRequest& request) {
  if (request.callback.empty() || request.callback.size() > kMaxItemCallbackBytes ||
      !is_valid_utf8(request.callback)) {
    return refused("an item's callback is 1 to 256 bytes of UTF-8");
  }
  if (request.payload.size() > settings_.max_payload_bytes) {
    return Error{Errc::kLimitExceeded, "the item's payload is larger than " +
                                           std::to_string(settings_.max_payload_bytes) + " bytes"};
  }
  if (!request.payload.empty() && !is_json(request.payload)) {
    return refused("an item's payload must be JSON");
  }
  auto retry = checked_retry(request.max_attempts, request.retry_base_ms, request.retry_max_ms);
  if (retry.has_error()) return retry.error();
  if (auto room = make_room(); room.has_error()) return room.error();

  Job job;
  job.kind = JobKind::kItem;
  job.id = make_uuid(random_);
  job.name = request.callback;
  job.created_at_ms = now_ms();
  job.retry = *retry;
  const bool is_head = !running_ && !head_;
  if (is_head) job.wait();
  jobs_.insert(job);
  if (!request.payload.empty()) jobs_.put(job.seq, JobPart::kInput, request.payload);
  if (size_) ++*size_;
  if (is_head) head_ = Head{job.seq, DueTime()};
  std::string record = record_json(job);
  return Pushed{std::move(record), std::move(job.id)};
}

Result<std::string> Queue::get(std::string_view id) {
  const auto job = jobs_.find(JobKind::kItem, id);
  if (!job) return not_found("no item has this id");
  return record_json(*job);
}

std::string Queue::record_json(const Job& job) {
  const bool running = runs(job);
  const bool waits = !running && !job.dead && job.next_at_ms > 0;
  std::string json = R"({"id":)";
  append_json_string(json, job.id);
  json += R"(,"callback":)";
  append_json_string(json, job.name);
  json += R"(,"payload":)" + payload_of(job);
  json += R"(,"state":")";
  json += job.dead ? "dead" : running ? "running" : "waiting";
  json += R"(","created_at":)" + std::to_string(job.created_at_ms);
  json += R"(,"attempts":)" + std::to_string(job.claims);
  json += R"(,"next_at":)" + (waits ? std::to_string(job.next_at_ms) : "null");
  json += R"(,"retry":{"max_attempts":)" + std::to_string(job.retry.max_attempts);
  json += R"(,"base_delay_ms":)" + std::to_string(job.retry.base.count());
  json += R"(,"max_delay_ms":)" + std::to_string(job.retry.cap.count());
  json += R"(},"last_error":)";
  if (const auto error = jobs_.document(job.seq, JobPart::kLastError)) {
    append_json_string(json, *error);
  } else {
    json += "null";
  }
  return json + "}";
}

Result<Queue::Query> Queue::query_of(const QueueFilter& filter) const {
  if (filter.member.empty() != filter.value.empty()) {
    return refused("a member of the payload is looked for together with its value");
  }
  if (!filter.value.empty() && !is_json(filter.value)) {
    return refused("the value that is looked for must be JSON");
  }
  const std::int64_t running = running_ && !running_->removed ? running_->seq : -1;
  Query query;
  query.callback = filter.callback;
  if (filter.state == "dead") {
    query.dead = true;
  } else if (filter.state == "waiting") {
    query.dead = false;
    query.except = running;
  } else if (filter.state == "running") {
    query.only = running;
  } else if (!filter.state.empty()) {
    return refused("an item's state is waiting, running or dead");
  }
  return query;
}

Result<std::string> Queue::list(const QueueFilter& filter) {
  auto query = query_of(filter);
  if (query.has_error()) return query.error();
  if (filter.limit > kMostItemsListed) return refused("a page has at most 1,000 items");
  const std::size_t limit = filter.limit == 0 ? kItemsListedByDefault : filter.limit;
  if (!filter.after.empty()) {
    const auto last = jobs_.find(JobKind::kItem, filter.after);
    if (!last) return not_found("no item has the id `after`");
    query->after = last->seq;
  }
  std::string page = "[";
  std::size_t count = 0;
  jobs_.each(kItems, params_of(*query), [&](const Job& job) {
    if (!filter.member.empty() && !has_member(payload_of(job), filter)) return true;
    if (count++ > 0) page += ',';
    page += record_json(job);
    return count < limit && page.size() < kMaxItemPageBytes;
  });
  return page + "]";
}

Result<void> Queue::remove(std::string_view id) {
  const auto job = jobs_.find(JobKind::kItem, id);
  if (!job) return not_found("no item has this id");
  jobs_.erase(job->seq);
  forget_rows(1);
  if (running_ && running_->seq == job->seq) running_->removed = true;
  if (head_ && head_->seq == job->seq) find_head();
  return {};
}

Result<std::uint64_t> Queue::remove_all(const QueueFilter& filter) {
  const auto query = query_of(filter);
  if (query.has_error()) return query.error();
  const std::uint64_t removed =
      filter.member.empty() ? remove_all_of(*query) : remove_matching(*query, filter);
  forget_rows(removed);
  if (running_ && !running_->removed) running_->removed = !jobs_.find(running_->seq);
  find_head();
  return removed;
}

std::uint64_t Queue::remove_all_of(const Query& query) {
  const auto count =
      jobs_.number("SELECT count(*) FROM cf_agents_jobs " HEARTH_QUEUE_CONDITION, params_of(query));
  if (!count || *count == 0) return 0;
  jobs_.run("DELETE FROM cf_agents_jobs " HEARTH_QUEUE_CONDITION, params_of(query));
  return static_cast<std::uint64_t>(*count);
}

// A bounded number after the other: neither the rows nor their keys are all in memory.
std::uint64_t Queue::remove_matching(Query query, const QueueFilter& filter) {
  std::uint64_t removed = 0;
  std::vector<std::int64_t> found;
  do {
    found.clear();
    jobs_.each(kItems, params_of(query), [&](const Job& job) {
      query.after = job.seq;
      if (has_member(payload_of(job), filter)) found.push_back(job.seq);
      return found.size() < kRemovedAtOnce;
    });
    for (const std::int64_t seq : found) jobs_.erase(seq);
    removed += found.size();
  } while (found.size() == kRemovedAtOnce);
  return removed;
}

Result<void> Queue::retry(std::string_view id) {
  const auto job = jobs_.find(JobKind::kItem, id);
  if (!job || !job->dead) return not_found("no dead letter has this id");
  const std::int64_t end = jobs_.number("SELECT max(seq) + 1 FROM cf_agents_jobs", {}).value_or(1);
  const std::array params{Param(job->seq), Param(end)};
  jobs_.run(
      "UPDATE cf_agents_jobs SET seq = ?2, state = 0, due_at = NULL, dead = 0, claims = 0, "
      "failures = 0, interruptions = 0, next_at = 0 WHERE seq = ?1",
      params);
  jobs_.run("UPDATE cf_agents_job_documents SET job = ?2 WHERE job = ?1", params);
  if (!head_) find_head();
  return {};
}

// ---- delivery -----------------------------------------------------------------------------------

void Queue::bury(Job& job, std::string_view why) {
  job.state = JobState::kDead;
  job.due_at_ms.reset();
  job.dead = true;
  jobs_.put(job.seq, JobPart::kLastError, why);
  jobs_.update(job);
}

std::optional<QueueDelivery> Queue::begin_next() {
  while (due()) {
    HEARTH_ASSERT(head_, "something is due, and the queue has no head");
    std::optional<Job> job = jobs_.find(head_->seq);
    HEARTH_ASSERT(job, "the head of the queue is not in its table");
    if (job->interruptions >= settings_.max_interruptions) {
      bury(*job, "interrupted again and again in the middle of its work");
      dead_.push_back(std::move(job->id));
      find_head();
      continue;
    }
    ++job->claims;
    ++job->interruptions;  // until its end is known
    if (job->interruptions > 1) {
      job->next_at_ms =
          now_ms() +
          back_off(job->interruptions - 1, kInterruptedBase, kInterruptedCap, random_).count();
    }
    job->claim();
    jobs_.update(*job);
    running_ = Running{job->seq};
    head_.reset();
    QueueDelivery delivery;
    delivery.attempt = job->claims;
    delivery.body = R"({"id":)";
    append_json_string(delivery.body, job->id);
    delivery.body += R"(,"payload":)" + payload_of(*job);
    delivery.body += R"(,"created_at":)" + std::to_string(job->created_at_ms);
    delivery.body += R"(,"attempt":)" + std::to_string(job->claims) + "}";
    delivery.id = std::move(job->id);
    delivery.callback = std::move(job->name);
    return delivery;
  }
  return std::nullopt;
}

QueueEnd Queue::ended(bool done, bool missing, std::string_view error) {
  HEARTH_ASSERT(running_, "the end of a delivery that was not begun");
  const Running running = *running_;
  running_.reset();
  QueueEnd end;
  if (running.removed) {
    end.next = QueueEnd::Next::kRemoved;
  } else if (done) {
    jobs_.erase(running.seq);
    forget_rows(1);
    end.next = QueueEnd::Next::kDone;
  } else {
    std::optional<Job> job = jobs_.find(running.seq);
    HEARTH_ASSERT(job, "the running item is not in its table");
    error = error.substr(0, kMaxItemErrorBytes);
    ++job->failures;
    job->interruptions = 0;
    job->next_at_ms = 0;
    if (missing || job->failures >= job->retry.max_attempts) {
      end.next = QueueEnd::Next::kDead;
      bury(*job, error);
    } else {
      end.next = QueueEnd::Next::kRetry;
      end.next_ms = now_ms() + retry_wait(job->retry, job->failures, random_).count();
      job->next_at_ms = end.next_ms;
      job->wait();
      jobs_.put(job->seq, JobPart::kLastError, error);
      jobs_.update(*job);
    }
  }
  find_head();
  return end;
}

void Queue::interrupt_on_purpose() {
  if (!running_ || running_->removed) return;
  std::optional<Job> job = jobs_.find(running_->seq);
  HEARTH_ASSERT(job, "the running item is not in its table");
  --job->claims;
  --job->interruptions;
  job->next_at_ms = 0;
  job->wait();
  jobs_.update(*job);
}

std::vector<std::string> Queue::take_dead() {
  return std::exchange(dead_, {});
}

bool Queue::due() const {
  return head_ && head_->due.reached(Now(clock_));
}

Wake Queue::wake() const {
  Wake wake;
  // What is due is begun in this turn: from the first item to the last the index is written to
  // once.
  wake.working = running_ || due();
  if (head_ && !wake.working) wake.at_ms = head_->due.wall_ms(Now(clock_));
  return wake;
}

}  // namespace hearth::durable
