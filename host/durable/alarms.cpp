#include "durable/alarms.hpp"

#include "durable/record_page.hpp"
#include "json/json_object_text.hpp"

#include <algorithm>
#include <charconv>
#include <system_error>
#include <utility>

namespace hearth::durable {

namespace {

// An alarm's place in the list: whether it is dead, its time and its seq. The place is valid even
// after the alarm was removed.
using AlarmPlace = std::array<std::int64_t, 3>;

std::string place_of(const Job& job) {
  return std::to_string(job.dead ? 1 : 0) + '.' + std::to_string(job.next_at_ms) + '.' +
         std::to_string(job.seq);
}

constexpr AlarmPlace kBeforeAll{-1, 0, 0};

std::optional<AlarmPlace> read_place(std::string_view text) {
  AlarmPlace place = kBeforeAll;
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
                  {.kind = JobKind::kAlarm,
                   .noun = "alarm",
                   .at_once = kMostRunning,
                   .most_dead = kMostDead},
                  max_crashes),
      settings_(settings) {}

std::optional<Job> Alarms::waiting_of(std::string_view method) {
  return jobs().first("WHERE key = ?1 AND kind = 6 AND state = 0 LIMIT 1", method);
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
  if (before) remove(*before);
  Job job;
  job.id = make_uuid(random());
  job.name = request.method;
  job.key = request.method;
  job.created_at_ms = now_ms();
  job.next_at_ms = std::max<std::int64_t>(request.at_ms, 1);  // 0 means no time
  insert(job, request.arguments);
  return Set{job.id, record_json(job), before.has_value()};
}

std::string Alarms::record_json(const Job& job) {
  JsonObjectText json;
  json.text("id", job.id)
      .text("method", job.name)
      .json("args", jobs().document(job.seq, JobPart::kInput).value_or("[]"))
      .number("fire_at", job.next_at_ms)
      .text("state", state_of(job))
      .number("attempts", job.claims)
      .text_or_null("last_error", jobs().document(job.seq, JobPart::kLastError));
  return json.take();
}

std::string Alarms::list() {
  return read(kBeforeAll, SIZE_MAX, SIZE_MAX).records;
}

Result<Alarms::Page> Alarms::page(std::string_view after, std::size_t limit) {
  const auto last = read_place(after);
  if (!last) return Error{Errc::kInvalidArgument, "the cursor is not from a page of alarms"};
  return read(*last, limit, kMaxPageBytes);
}

Alarms::Page Alarms::read(const AlarmPlace& place, std::size_t limit, std::size_t most_bytes) {
  RecordPage records(limit, most_bytes);
  std::string here;
  std::string next;
  jobs().each("WHERE kind = 6 AND (dead, next_at, seq) > (?1, ?2, ?3) ORDER BY dead, next_at, seq",
              storage::params_of(place[0], place[1], place[2]), [&](const Job& job) {
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

// If another alarm of the method was set while this one ran, it takes the place of a retry.
std::optional<std::int64_t> Alarms::next_after_failure(const Job& job) {
  if (job.failures >= settings_.max_attempts || waiting_of(job.name)) return std::nullopt;
  constexpr int kMostDoublings = 20;
  return now_ms() +
         (settings_.retry_base * (1 << std::clamp(job.failures - 1, 0, kMostDoublings))).count();
}

}  // namespace hearth::durable
