#include "durable/alarms.hpp"

#include "durable/record_page.hpp"
#include "json/json_text.hpp"

#include <algorithm>
#include <charconv>
#include <system_error>
#include <utility>

namespace hearth::durable {

using storage::Param;

namespace {

constexpr std::string_view kCrashedAgain = "the server crashed again and again during its call";

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
               AlarmSettings settings)
    : CountedTries(database, clock, random,
                   {.kind = JobKind::kAlarm,
                    .most = settings.max_attempts,
                    .all_count = true,
                    .why = kCrashedAgain}),
      settings_(settings),
      line_(clock, *this, kMostRunning) {}

void Alarms::load() {
  if (jobs().exists()) CountedTries::load();
}

void Alarms::close() {
  line_.close();
  jobs().close();
}

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
  if (before) jobs().erase(before->seq);
  Job job;
  job.kind = JobKind::kAlarm;
  job.id = make_uuid(random());
  job.name = request.method;
  job.key = request.method;
  job.created_at_ms = now_ms();
  job.next_at_ms = std::max<std::int64_t>(request.at_ms, 1);  // 0 means no time
  job.wait();
  jobs().insert(job);
  jobs().put(job.seq, JobPart::kInput, request.arguments);
  line_.changed();
  return Set{job.id, record_json(job), before.has_value()};
}

std::string with_replaced(Alarms::Set set) {
  std::string record = std::move(set.record);
  record.pop_back();
  return record + (set.replaced ? R"(,"replaced":true})" : R"(,"replaced":false})");
}

std::string Alarms::record_json(const Job& job) {
  std::string json = R"({"id":)";
  append_json_string(json, job.id);
  json += R"(,"method":)";
  append_json_string(json, job.name);
  json += R"(,"args":)" + jobs().document(job.seq, JobPart::kInput).value_or("[]");
  json += R"(,"fire_at":)" + std::to_string(job.next_at_ms);
  json += R"(,"state":")";
  json += job.dead ? "dead" : runs(job.id) ? "running" : "waiting";
  json += R"(","attempts":)" + std::to_string(job.claims);
  json += R"(,"last_error":)";
  if (const auto error = jobs().document(job.seq, JobPart::kLastError)) {
    append_json_string(json, *error);
  } else {
    json += "null";
  }
  return json + "}";
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
  jobs().erase(job->seq);
  line_.changed();
  return {};
}

// ---- delivery -----------------------------------------------------------------------------------

std::chrono::milliseconds Alarms::wait_after(int attempts) const {
  constexpr int kMostDoublings = 20;
  return settings_.retry_base * (1 << std::clamp(attempts - 1, 0, kMostDoublings));
}

void Alarms::bury(Job& job, std::string_view why) {
  CountedTries::bury(job, why);
  jobs().run(
      "DELETE FROM cf_agents_jobs WHERE seq IN (SELECT seq FROM cf_agents_jobs "
      "WHERE kind = 6 AND state = 2 ORDER BY seq DESC LIMIT -1 OFFSET ?1)",
      std::array{Param(static_cast<std::int64_t>(kMostDead))});
}

std::optional<AlarmDelivery> Alarms::begin_next() {
  const std::optional<Job> job = line_.claim();
  if (!job) return std::nullopt;
  return AlarmDelivery{job->id, job->name,
                       jobs().document(job->seq, JobPart::kInput).value_or("[]")};
}

AlarmEnd Alarms::ended(std::string_view id, std::string_view error) {
  line_.take(id);
  auto job = claimed_row(id);
  if (!job) return AlarmEnd::kRemoved;
  if (error.empty()) {
    jobs().erase(job->seq);
    return AlarmEnd::kDone;
  }
  // A method has at most one waiting alarm, and another was set while this one ran.
  if (job->claims >= settings_.max_attempts || waiting_of(job->name)) {
    bury(*job, error);
    return AlarmEnd::kDead;
  }
  try_again(*job, now_ms() + wait_after(job->claims).count(), error);
  return AlarmEnd::kRetry;
}

}  // namespace hearth::durable
