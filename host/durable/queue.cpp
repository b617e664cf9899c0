#include "durable/queue.hpp"

#include "base/utf8.hpp"
#include "durable/fiber_record.hpp"
#include "durable/record_page.hpp"
#include "durable/retry_policy.hpp"
#include "json/json_object_text.hpp"
#include "json/json_scanner.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace hearth::durable {

using storage::Param;

namespace {

constexpr std::size_t kMaxItemCallbackBytes = 256;
constexpr std::size_t kMostItemsListed = 1'000;
constexpr std::size_t kItemsListedByDefault = 100;
constexpr std::size_t kRemovedAtOnce = 1'000;

Error refused(const char* why) {
  return Error{Errc::kInvalidArgument, why};
}

// Whether the payload is an object whose member has this value.
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

// The parameters of HEARTH_QUEUE_CONDITION, from a Queue::Query.
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
             QueueSettings settings, int max_crashes)
    : CountedJobs(database, clock, random,
                  {.kind = JobKind::kItem, .noun = "item", .lane = Lane::kKind}, max_crashes),
      settings_(settings) {}

// ---- for the agent's code -----------------------------------------------------------------------

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
  if (!count().below(settings_.max_items))
    return Error{Errc::kLimitExceeded, "this agent's queue is full"};

  Job job;
  job.id = make_uuid(random());
  job.name = request.callback;
  job.created_at_ms = now_ms();
  job.retry = *retry;
  insert(job, request.payload);
  std::string record = record_json(job);
  return Pushed{std::move(record), std::move(job.id)};
}

std::string Queue::record_json(const Job& job) {
  const std::string_view state = state_of(job);
  const bool waits = state == "waiting" && job.next_at_ms > 0;
  JsonObjectText retry;
  retry.number("max_attempts", job.retry.max_attempts)
      .number("base_delay_ms", job.retry.base.count())
      .number("max_delay_ms", job.retry.cap.count());
  JsonObjectText json;
  json.text("id", job.id)
      .text("callback", job.name)
      .json("payload", jobs().document(job.seq, JobPart::kInput).value_or("null"))
      .text("state", state)
      .number("created_at", job.created_at_ms)
      .number("attempts", job.claims)
      .number_or_null("next_at", waits ? std::optional(job.next_at_ms) : std::nullopt)
      .json("retry", retry.take())
      .text_or_null("last_error", jobs().document(job.seq, JobPart::kLastError));
  if (job.waits_for_code()) json.flag("waits_for_code", true);
  return json.take();
}

Result<std::string> Queue::get(std::string_view id) {
  const auto job = find(id);
  if (!job) return Error{Errc::kNotFound, "no item has this id"};
  return record_json(*job);
}

Result<Queue::Query> Queue::query_of(const QueueFilter& filter) {
  if (filter.member.empty() != filter.value.empty()) {
    return refused("a filter by a member of the payload needs the member's name and value");
  }
  if (!filter.value.empty() && !is_json(filter.value)) {
    return refused("the value of the filter must be JSON");
  }
  std::int64_t running = -1;
  for (const auto& [id, job] : line().claimed()) {
    if (const auto row = claimed_row(id)) running = row->seq;
  }
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
  const auto place = place_after(filter.after);
  if (!place) return place.error();
  query->after = *place;
  RecordPage page(limit);
  jobs().each(kItems, params_of(*query), [&](const Job& job) {
    if (!filter.member.empty() &&
        !has_member(jobs().document(job.seq, JobPart::kInput).value_or("null"), filter))
      return true;
    return page.add(record_json(job));
  });
  return page.take();
}

Result<std::uint64_t> Queue::remove_all(const QueueFilter& filter) {
  const auto query = query_of(filter);
  if (query.has_error()) return query.error();
  const std::uint64_t removed =
      filter.member.empty() ? remove_all_of(*query) : remove_matching(*query, filter);
  count().removed(removed);
  promote({});
  return removed;
}

std::uint64_t Queue::remove_all_of(const Query& query) {
  const auto count = jobs().number("SELECT count(*) FROM cf_agents_jobs " HEARTH_QUEUE_CONDITION,
                                   params_of(query));
  if (!count || *count == 0) return 0;
  jobs().run("DELETE FROM cf_agents_jobs " HEARTH_QUEUE_CONDITION, params_of(query));
  return static_cast<std::uint64_t>(*count);
}

// In portions, so that neither all rows nor all their keys are in memory.
std::uint64_t Queue::remove_matching(Query query, const QueueFilter& filter) {
  std::uint64_t removed = 0;
  std::vector<std::int64_t> found;
  do {
    found.clear();
    jobs().each(kItems, params_of(query), [&](const Job& job) {
      query.after = job.seq;
      if (has_member(jobs().document(job.seq, JobPart::kInput).value_or("null"), filter))
        found.push_back(job.seq);
      return found.size() < kRemovedAtOnce;
    });
    for (const std::int64_t seq : found) jobs().erase(seq);
    removed += found.size();
  } while (found.size() == kRemovedAtOnce);
  return removed;
}

Result<void> Queue::retry(std::string_view id) {
  const auto job = find(id);
  if (!job || (!job->dead && !job->waits_for_code()))
    return Error{Errc::kNotFound, "no dead letter, and no item that waits for code, has this id"};
  const std::int64_t end = jobs().number("SELECT max(seq) + 1 FROM cf_agents_jobs", {}).value_or(1);
  const auto params = storage::params_of(job->seq, end);
  jobs().run(
      "UPDATE cf_agents_jobs SET seq = ?2, state = 0, due_at = NULL, dead = 0, claims = 0, "
      "failures = 0, failing_since = NULL, interruptions = 0, fatal_attempts = 0, next_at = 0 "
      "WHERE seq = ?1",
      params);
  jobs().run("UPDATE cf_agents_job_documents SET job = ?2 WHERE job = ?1", params);
  promote({});
  return {};
}

// ---- delivery -----------------------------------------------------------------------------------

std::string Queue::body_of(const Begun& item) {
  return JsonObjectText()
      .text("id", item.id)
      .json("payload", item.input.empty() ? "null" : std::string_view(item.input))
      .number("created_at", item.created_at_ms)
      .number("attempt", item.claims)
      .take();
}

std::optional<std::int64_t> Queue::next_after_failure(const Job& job) {
  if (job.failures >= job.retry.max_attempts) return std::nullopt;
  return now_ms() + retry_wait(job.retry, job.failures, random()).count();
}

}  // namespace hearth::durable
