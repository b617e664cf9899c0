#include "durable/alarms.hpp"

#include "base/assert.hpp"
#include "json/json_text.hpp"

#include <algorithm>
#include <charconv>
#include <system_error>
#include <utility>

namespace hearth::durable {

using storage::Param;

namespace {

constexpr std::size_t kMaxAlarmErrorBytes = 4096;
constexpr std::string_view kCrashedAgain = "the server crashed again and again in its middle";

// Where an alarm stands in the list: whether it is dead, its time and its seq. It says what comes
// behind it even when the alarm itself is gone.
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

void Alarms::load() {
  if (!jobs_.exists()) return;
  jobs_.release(JobKind::kAlarm, false, now_ms());
  find_next();
}

void Alarms::find_next() {
  const auto at = jobs_.number(
      "SELECT min(due_at) FROM cf_agents_jobs WHERE kind = 6 AND state = 0 AND due_at IS NOT NULL",
      {});
  next_.reset();
  if (at) next_ = DueTime(clock_, *at);
}

// ---- for the agent's code and for clients -------------------------------------------------------

Result<Alarms::Set> Alarms::set(const AlarmRequest& request) {
  const auto before = jobs_.first("WHERE key = ?1 AND kind = 6 AND state = 0 LIMIT 1",
                                  std::array{Param(std::string_view(request.method))});
  const auto is_full = [this] {
    const auto pending =
        jobs_.number("SELECT count(*) FROM cf_agents_jobs WHERE kind = 6 AND state IN (0, 1)", {});
    return std::cmp_greater_equal(pending.value_or(0), settings_.max_alarms);
  };
  if (!before && jobs_.count_bound(JobKind::kAlarm) >= settings_.max_alarms && is_full())
    return Error{Errc::kLimitExceeded,
                 "an agent has at most " + std::to_string(settings_.max_alarms) + " alarms"};
  if (before) jobs_.erase(before->seq);
  Job job;
  job.kind = JobKind::kAlarm;
  job.id = make_uuid(random_);
  job.name = request.method;
  job.key = request.method;
  job.created_at_ms = now_ms();
  job.next_at_ms = std::max<std::int64_t>(request.at_ms, 1);  // 0 would be: none
  job.wait();
  jobs_.insert(job);
  jobs_.put(job.seq, JobPart::kInput, request.arguments);
  find_next();
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
  json += R"(,"args":)" + jobs_.document(job.seq, JobPart::kInput).value_or("[]");
  json += R"(,"fire_at":)" + std::to_string(job.next_at_ms);
  json += R"(,"state":")";
  json += job.dead ? "dead" : runs(job.id) ? "running" : "waiting";
  json += R"(","attempts":)" + std::to_string(job.claims);
  json += R"(,"last_error":)";
  if (const auto error = jobs_.document(job.seq, JobPart::kLastError)) {
    append_json_string(json, *error);
  } else {
    json += "null";
  }
  return json + "}";
}

std::string Alarms::list() {
  std::string all = "[";
  if (!jobs_.exists()) return all + "]";
  jobs_.each("WHERE kind = 6 ORDER BY dead, next_at, seq", {}, [&](const Job& job) {
    if (all.size() > 1) all += ',';
    all += record_json(job);
    return true;
  });
  return all + "]";
}

Result<Alarms::Page> Alarms::page(std::string_view after, std::size_t limit) {
  const auto last = read_place(after);
  if (!last) return Error{Errc::kInvalidArgument, "the cursor is of no page of alarms"};
  Page page{.records = "[", .next = {}};
  std::size_t count = 0;
  std::string here;
  if (jobs_.exists()) {
    jobs_.each("WHERE kind = 6 AND (dead, next_at, seq) > (?1, ?2, ?3) ORDER BY dead, next_at, seq",
               std::array{Param((*last)[0]), Param((*last)[1]), Param((*last)[2])},
               [&](const Job& job) {
                 if (count == limit || page.records.size() > kMaxPageBytes) {
                   page.next = here;
                   return false;
                 }
                 if (count++ > 0) page.records += ',';
                 page.records += record_json(job);
                 here = place_of(job);
                 return true;
               });
  }
  page.records += ']';
  return page;
}

Result<void> Alarms::remove(std::string_view id) {
  const auto job = jobs_.exists() ? jobs_.find(JobKind::kAlarm, id) : std::nullopt;
  if (!job) return Error{Errc::kNotFound, "no alarm has this id"};
  jobs_.erase(job->seq);
  std::erase(running_, id);
  find_next();
  return {};
}

// ---- delivery -----------------------------------------------------------------------------------

std::chrono::milliseconds Alarms::wait_after(int attempts) const {
  constexpr int kMostDoublings = 20;
  return settings_.retry_base * (1 << std::clamp(attempts - 1, 0, kMostDoublings));
}

void Alarms::bury(Job& job, std::string_view why) {
  job.state = JobState::kDead;
  job.due_at_ms.reset();
  job.dead = true;
  jobs_.put(job.seq, JobPart::kLastError, why.substr(0, kMaxAlarmErrorBytes));
  jobs_.update(job);
  jobs_.run(
      "DELETE FROM cf_agents_jobs WHERE seq IN (SELECT seq FROM cf_agents_jobs "
      "WHERE kind = 6 AND state = 2 ORDER BY seq DESC LIMIT -1 OFFSET ?1)",
      std::array{Param(static_cast<std::int64_t>(kMostDead))});
}

std::optional<AlarmDelivery> Alarms::begin_next() {
  while (due()) {
    auto job = jobs_.first_due(JobKind::kAlarm, JobState::kWaiting);
    HEARTH_ASSERT(job, "an alarm is due, and none waits");
    if (job->claims >= settings_.max_attempts) {
      bury(*job, kCrashedAgain);
      dead_.push_back(job->id);
      find_next();
      continue;
    }
    ++job->claims;
    job->claim();
    jobs_.update(*job);
    running_.push_back(job->id);
    find_next();
    return AlarmDelivery{job->id, job->name,
                         jobs_.document(job->seq, JobPart::kInput).value_or("[]")};
  }
  return std::nullopt;
}

bool Alarms::runs(std::string_view id) const {
  return std::ranges::find(running_, id) != running_.end();
}

AlarmEnd Alarms::ended(std::string_view id, std::string_view error) {
  if (std::erase(running_, id) == 0) return AlarmEnd::kRemoved;
  auto job = jobs_.find(JobKind::kAlarm, id);
  HEARTH_ASSERT(job, "an alarm that runs is not in its table");
  if (error.empty()) {
    jobs_.erase(job->seq);
    return AlarmEnd::kDone;
  }
  // Another one was set while it ran: there is one alarm a method.
  const bool has_heir = jobs_
                            .first("WHERE key = ?1 AND kind = 6 AND state = 0 LIMIT 1",
                                   std::array{Param(std::string_view(job->name))})
                            .has_value();
  if (job->claims >= settings_.max_attempts || has_heir) {
    bury(*job, error);
    return AlarmEnd::kDead;
  }
  job->next_at_ms = now_ms() + wait_after(job->claims).count();
  job->wait();
  jobs_.put(job->seq, JobPart::kLastError, error.substr(0, kMaxAlarmErrorBytes));
  jobs_.update(*job);
  find_next();
  return AlarmEnd::kRetry;
}

void Alarms::interrupt_on_purpose() {
  for (const std::string& id : std::exchange(running_, {})) {
    auto job = jobs_.find(JobKind::kAlarm, id);
    HEARTH_ASSERT(job, "an alarm that runs is not in its table");
    --job->claims;
    job->wait();
    jobs_.update(*job);
  }
  find_next();
}

std::vector<std::string> Alarms::take_dead() {
  return std::exchange(dead_, {});
}

bool Alarms::due() const {
  return running_.size() < kMostRunning && next_ && next_->reached(Now(clock_));
}

Wake Alarms::wake() const {
  Wake wake;
  wake.working = !running_.empty() || due();
  if (next_ && !wake.working) wake.at_ms = next_->wall_ms(Now(clock_));
  return wake;
}

}  // namespace hearth::durable
