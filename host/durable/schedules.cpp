#include "durable/schedules.hpp"

#include "durable/schedule_rules.hpp"

#include <algorithm>

namespace hearth::durable {
namespace {

constexpr std::size_t kMaxListed = 1'000;
constexpr std::size_t kMaxListBytes = std::size_t{8} << 20;

Error no_such_schedule() {
  return Error{Errc::kNotFound, "no schedule has this id"};
}

}  // namespace

Schedules::Schedules(storage::AgentDatabase& database, const Clock& clock, Random& random,
                     ScheduleSettings settings, int max_crashes)
    : table_(database),
      clock_(clock),
      random_(random),
      settings_(settings),
      runs_(table_, clock, random, settings_, max_crashes) {}

std::string Schedules::record_of(const ScheduleRow& row) {
  return schedule_record(row, table_.payload(row.seq));
}

// ---- what an agent asks for ---------------------------------------------------------------------

Result<Schedules::Created> Schedules::create(const ScheduleRequest& request) {
  runs_.line().follow_clock();
  Result<ScheduleRow> checked = checked_schedule(request, settings_, now_ms());
  if (!checked) return checked.error();
  ScheduleRow& row = *checked;
  std::optional<ScheduleRow> dead;
  if (is_idempotent(request)) {
    const std::string likeness = row.key.value_or("");
    if (const auto found = table_.find_alike(likeness, false))
      return Created{record_of(*found), found->id, false};
    dead = table_.find_alike(likeness, true);
  }
  if (size() - (dead ? 1 : 0) >= settings_.max_schedules) {
    return Error{Errc::kLimitExceeded,
                 "an agent has at most " + std::to_string(settings_.max_schedules) + " schedules"};
  }
  const std::string_view payload = request.payload.empty() ? "null" : request.payload;
  row.id = make_uuid(random_);
  if (dead) {
    row.running = dead->running;
    table_.hand_over_children(dead->id, row.id);
    runs_.remove(*dead);
  }
  table_.insert(row, payload);
  runs_.line().changed();
  return Created{schedule_record(row, payload), row.id, true};
}

Result<std::string> Schedules::get(std::string_view id) {
  const auto row = table_.find(id);
  if (!row) return no_such_schedule();
  return record_of(*row);
}

std::string Schedules::list(const ScheduleFilter& filter) {
  ScheduleFilter bounded = filter;
  bounded.limit = std::clamp<std::size_t>(filter.limit, 1, kMaxListed);
  std::string out = "[";
  for (const ScheduleRow& row : table_.list(bounded)) {
    const std::string record = record_of(row);
    if (out.size() > 1) {
      if (out.size() + record.size() > kMaxListBytes) break;
      out += ',';
    }
    out += record;
  }
  return out + "]";
}

Result<void> Schedules::cancel(std::string_view id) {
  const auto row = table_.find(id);
  if (!row) return no_such_schedule();
  for (const ScheduleRow& child : table_.children(row->id)) runs_.remove(child);
  runs_.remove(*row);
  return {};
}

Result<void> Schedules::pause(std::string_view id, bool paused) {
  auto row = table_.find(id);
  if (!row) return no_such_schedule();
  row->paused = paused;
  runs_.store(*row);
  for (ScheduleRow& child : table_.children(row->id)) {
    child.paused = paused;
    runs_.store(child);
  }
  return {};
}

Result<void> Schedules::retry(std::string_view id) {
  runs_.line().follow_clock();
  auto row = table_.find(id);
  if (!row || row->running > 0 || (row->missing == 0 && !row->dead))
    return Error{Errc::kNotFound, "no missing or dead schedule has this id"};
  row->dead = false;
  row->missing = 0;
  row->attempts = 0;
  row->interruptions = row->fatal_attempts = 0;
  row->failures = 0;
  row->last_error.reset();
  const std::int64_t ended_at = row->set_at_ms;  // if it is over
  row->set_at_ms = now_ms();
  row->next_at_ms = row->set_at_ms;
  if (row->over) {  // the run is done; due now is only the search for the next time
    row->set_at_ms = ended_at;
    runs_.store(*row);
    return {};
  }
  // The caller asks for the run, so it is not too late. Occurrences in between are missed as usual.
  row->owed = row->misfire == Misfire::kSkip;
  row->begun_at = 0;
  runs_.store(*row);
  return {};
}

Result<void> Schedules::run_now(std::string_view id) {
  runs_.line().follow_clock();
  auto row = table_.find(id);
  if (!row || row->paused || row->dead || row->running > 0)
    return Error{Errc::kNotFound, "only a schedule that waits for its time can run now"};
  const std::int64_t now = now_ms();
  row->missing = 0;
  (void)set_next(*row, now, now);
  row->owed = row->misfire == Misfire::kSkip;  // however late it begins
  runs_.store(*row);
  return {};
}

// ---- what is due --------------------------------------------------------------------------------

Wake Schedules::wake() const {
  Wake wake;
  wake.working = !runs_.line().claimed().empty();
  // If max_running run, the end of a run begins the next due row.
  if (!runs_.line().full()) wake.at_ms = runs_.line().moment();
  wake.needs_person = table_.needs_person();
  return wake;
}

}  // namespace hearth::durable
