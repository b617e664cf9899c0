#include "durable/alarms.hpp"

#include "durable/record_page.hpp"
#include "json/json_object_text.hpp"

#include <algorithm>
#include <charconv>
#include <system_error>
#include <utility>

namespace hearth::durable {

using storage::Param;

namespace {

// An alarm's place in the list: whether it is dead, its time and its seq. The place is valid even
// after the alarm was removed.
using AlarmPlace = std::array<std::int64_t, 3>;

std::string place_of(const Job& job) {
  return std::to_string(job.dead ? 1 : 0) + '.' + std::to_string(job.next_at_ms) + '.' +
         std::to_string(job.seq);
}

// Empty: before all alarms.
std::optional<AlarmPlace> read_place(std::string_view text) {
  AlarmPlace place{-1, 0, 0};
  if (text.empty()) return place;
  for (std::size_t i = 0; i < place.size(); ++i) {
    const auto [end, problem] =
        std::from_chars(text.data(), text.data() + text.size(), place.at(i));
    if (problem != std::errc()) return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    if (i + 1 == place.size()) break;
    if (!text.starts_with('.')) return std::nullopt;
    text.remove_prefix(1);
  }
  if (!text.empty()) return std::nullopt;
  return place;
}

}  // namespace

Alarms::Alarms(storage::AgentDatabase& database, const Clock& clock, Random& random,
               AlarmSettings settings, int max_crashes)
    : CountedJobs(database, clock, random,
                  {.kind = JobKind::kAlarm, .at_once = kMostRunning, .max_crashes = max_crashes}),
      settings_(settings) {}

std::optional<Job> Alarms::waiting_of(std::string_view method) {
  return jobs().first("WHERE key = ?1 AND kind = 6 AND state = 0 LIMIT 1",
                      std::array{Param(method)});
}

// ---- for the agent's code and for clients -------------------------------------------------------

Result<Alarms::Set> Alarms::set(const AlarmRequest& request) {
  const auto before = waiting_of(request.method);
  const auto is_full = [this] {
    const auto pending =
        jobs().number("SELECT count(*) FROM cf_agents_jobs WHERE kind = 6 AND state IN (0, 1)", {});
    return std::cmp_greater_equal(pending.value_or(0), settings_.max_alarms);
  };
  if (!before && jobs().count_bound(JobKind::kAlarm) >= settings_.max_alarms && is_full())
    return Error{Errc::kLimitExceeded,
                 "an agent has at most " + std::to_string(settings_.max_alarms) + " alarms"};
  if (before) CountedJobs::remove(*before);
  Job job;
  job.id = make_uuid(random());
  job.name = request.method;
  job.key = request.method;
  job.created_at_ms = now_ms();
  job.next_at_ms = std::max<std::int64_t>(request.at_ms, 1);  // 0 means no time
  insert(job, request.arguments);
  return Set{job.id, record_json(job), before.has_value()};
}

std::string with_replaced(Alarms::Set set) {
  std::string record = std::move(set.record);
  record.pop_back();
  return record + (set.replaced ? R"(,"replaced":true})" : R"(,"replaced":false})");
}

std::string Alarms::record_json(const Job& job) {
  JsonObjectText json;
  json.text("id", job.id)
      .text("method", job.name)
      .json("args", jobs().document(job.seq, JobPart::kInput).value_or("[]"))
      .number("fire_at", job.next_at_ms)
      .text("state", state_of(job))
      .number("attempts", job.claims)
      .text_or_null("last_error", last_error(job));
  return json.take();
}

std::string Alarms::list() {
  RecordPage all(SIZE_MAX, SIZE_MAX);
  jobs().each("WHERE kind = 6 ORDER BY dead, next_at, seq", {},
              [&](const Job& job) { return all.add(record_json(job)); });
  return all.take();
}

Result<Alarms::Page> Alarms::page(std::string_view after, std::size_t limit) {
  const auto last = read_place(after);
  if (!last) return Error{Errc::kInvalidArgument, "the cursor is not from a page of alarms"};
  RecordPage records(limit, kMaxPageBytes);
  std::string here;
  std::string next;
  jobs().each("WHERE kind = 6 AND (dead, next_at, seq) > (?1, ?2, ?3) ORDER BY dead, next_at, seq",
              std::array{Param((*last)[0]), Param((*last)[1]), Param((*last)[2])},
              [&](const Job& job) {
                if (records.full()) {
                  next = here;
                  return false;
                }
                records.add(record_json(job));
                here = place_of(job);
                return true;
              });
  return Page{records.take(), std::move(next)};
}

Result<void> Alarms::remove(std::string_view id) {
  const auto job = jobs().exists() ? jobs().find(JobKind::kAlarm, id) : std::nullopt;
  if (!job) return Error{Errc::kNotFound, "no alarm has this id"};
  CountedJobs::remove(*job);
  return {};
}

// ---- delivery -----------------------------------------------------------------------------------

std::chrono::milliseconds Alarms::wait_after(int failures) const {
  constexpr int kMostDoublings = 20;
  return settings_.retry_base * (1 << std::clamp(failures - 1, 0, kMostDoublings));
}

void Alarms::bury(Job& job, std::string_view why) {
  CountedJobs::bury(job, why);
  jobs().run(
      "DELETE FROM cf_agents_jobs WHERE seq IN (SELECT seq FROM cf_agents_jobs "
      "WHERE kind = 6 AND state = 2 ORDER BY seq DESC LIMIT -1 OFFSET ?1)",
      std::array{Param(static_cast<std::int64_t>(kMostDead))});
}

std::optional<AlarmDelivery> Alarms::begin_next() {
  const std::optional<Job> job = begin();
  if (!job) return std::nullopt;
  return AlarmDelivery{job->id, job->seq, job->name,
                       jobs().document(job->seq, JobPart::kInput).value_or("[]")};
}

TryEnd Alarms::ended(std::string_view id, TryOutcome outcome, std::string_view error) {
  return end(id, outcome, error).next;
}

// Another alarm of the method was set while this one ran: it takes the place of a retry.
std::optional<std::int64_t> Alarms::failed(Job& job) {
  ++job.failures;
  if (job.failures >= settings_.max_attempts || waiting_of(job.name)) return std::nullopt;
  return now_ms() + wait_after(job.failures).count();
}

}  // namespace hearth::durable
