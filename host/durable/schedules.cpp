// Schedules: the agent's requests, and how rows follow the clock. Runs: schedule_runs.cpp.
#include "durable/schedules.hpp"

#include "durable/schedule_request.hpp"

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
      line_(clock, *this, settings.max_running, ClockRule::kBoth, max_crashes) {}

void Schedules::load(bool has_code) {
  for (ScheduleRow& row : table_.load()) {
    ++(row.parent ? children_ : size_);
    take_up(row, has_code);
  }
}

void Schedules::close() {
  line_.close();
}

// ---- the rows and what is known of them ---------------------------------------------------------

void Schedules::store(ScheduleRow& row) {
  table_.update(row);
  line_.changed();
}

void Schedules::insert(ScheduleRow& row, std::string_view payload) {
  table_.insert(row, payload);
  ++(row.parent ? children_ : size_);
  line_.changed();
}

void Schedules::remove(const ScheduleRow& row) {
  table_.erase(row.seq);
  std::size_t& count = row.parent ? children_ : size_;
  if (count > 0) --count;
  line_.changed();
}

std::optional<ScheduleRow> Schedules::parent_of(const ScheduleRow& row) {
  return row.parent ? table_.find(*row.parent) : std::nullopt;
}

std::string Schedules::record_of(const ScheduleRow& row) {
  return schedule_record(row, table_.payload(row.seq));
}

// ---- the wall's clock ---------------------------------------------------------------------------

// Bounds the wait of a row that waits for a length of time: the clock was set back meanwhile.
void Schedules::bound_wait(ScheduleRow& row, std::int64_t now) {
  const std::int64_t latest = now + std::max<std::int64_t>(0, row.next_at_ms - row.set_at_ms);
  if (row.next_at_ms <= latest) return;
  row.next_at_ms = latest;
  row.scheduled_for = std::min(row.scheduled_for, latest);
}

// Finds the time of a cron row again: the clock was set back from `last` to `now` while it waited.
void Schedules::reckon_anew(ScheduleRow& row, std::int64_t last, std::int64_t now) {
  const Result<Recurrence> recurrence = recurrence_of(row, settings_);
  if (!recurrence) return;  // reported when the row is due
  const auto at = recurrence->next(recurrence->search_from(last, now));
  if (at && *at < row.next_at_ms) row.next_at_ms = row.scheduled_for = *at;
}

// An occurrence is owed that no instance could run from `from` to `now`. Other occurrences in this
// time are missed like any others.
// Failure: kUnavailable; the row is unchanged, and the caller must try again later.
Result<void> Schedules::reckon_absence(ScheduleRow& row, std::int64_t from, std::int64_t now) {
  const Result<Recurrence> recurrence = recurrence_of(row, settings_);
  if (!recurrence) {
    if (recurrence.error().code == Errc::kUnavailable) return recurrence.error();
    return {};  // reported after the run
  }
  const std::uint32_t others = recurrence->count(std::max(row.scheduled_for, from), now);
  if (others == 0) return {};
  if (row.misfire == Misfire::kAll) {
    row.catch_up_until = now;
    return {};
  }
  row.missed = std::min(kMostCounted, row.missed + others);
  note(row, Note::What::kMissed, others);
  return {};
}

// Takes over a row of an earlier instance.
void Schedules::take_up(ScheduleRow& row, bool has_code) {
  const std::int64_t now = now_ms();
  bool changed = false;
  if (row.running > 0) {  // in an earlier instance
    row.running = 0;
    if (row.next_at_ms != 0 && !row.may_overlap()) {
      const std::int64_t wait = line_.wait_after_cut(row, random_).count();
      row.next_at_ms = wait > 0 ? now + wait : std::min(row.next_at_ms, now);
      row.set_at_ms = now;
    }
    changed = true;
  }
  if (has_code && row.missing > 0 && row.next_at_ms > now) {  // the class may have the callback now
    row.next_at_ms = now;
    changed = true;
  }
  if (row.set_at_ms > now) {
    if (row.waits_a_length()) {
      bound_wait(row, now);
    } else if (row.is(ScheduleType::kCron)) {
      reckon_anew(row, row.set_at_ms, now);
    }
    row.set_at_ms = now;
    changed = true;
  }
  if (row.begun_at != 0 && !row.is_one_shot() && !row.over) {
    const bool reckoned = reckon_absence(row, row.begun_at, now).has_value();
    row.set_at_ms = reckoned ? now : std::min(row.begun_at, now);  // else admit() tries again
    row.begun_at = 0;
    changed = true;
  }
  if (changed) store(row);
}

void Schedules::follow(std::int64_t jump_ms) {
  if (size_ + children_ == 0) return;
  const std::int64_t now = now_ms();
  for (ScheduleRow& row : table_.load()) {
    const bool claimed = row.running > 0 && !row.may_overlap();
    if (row.waits_a_length()) {
      row.shift(jump_ms);
    } else if (jump_ms < 0 && row.is(ScheduleType::kCron) && !claimed) {
      reckon_anew(row, now - jump_ms, now);
    } else {
      continue;
    }
    store(row);
  }
}

// ---- what an agent asks for ---------------------------------------------------------------------

Result<Schedules::Created> Schedules::create(const ScheduleRequest& request) {
  line_.follow_clock();
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
    remove(*dead);
  }
  insert(row, payload);
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
  for (const ScheduleRow& child : table_.children(row->id)) remove(child);
  remove(*row);
  return {};
}

Result<void> Schedules::pause(std::string_view id, bool paused) {
  auto row = table_.find(id);
  if (!row) return no_such_schedule();
  row->paused = paused;
  store(*row);
  for (ScheduleRow& child : table_.children(row->id)) {
    child.paused = paused;
    store(child);
  }
  return {};
}

Result<void> Schedules::retry(std::string_view id) {
  line_.follow_clock();
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
    store(*row);
    return {};
  }
  // The caller asks for the run, so it is not too late. Occurrences in between are missed as usual.
  row->owed = row->misfire == Misfire::kSkip;
  row->begun_at = 0;
  store(*row);
  return {};
}

Result<void> Schedules::run_now(std::string_view id) {
  line_.follow_clock();
  auto row = table_.find(id);
  if (!row || row->paused || row->dead || row->running > 0)
    return Error{Errc::kNotFound, "only a schedule that waits for its time can run now"};
  const std::int64_t now = now_ms();
  row->missing = 0;
  set_next(*row, now, now);
  row->owed = row->misfire == Misfire::kSkip;  // however late it begins
  store(*row);
  return {};
}

// ---- what is due --------------------------------------------------------------------------------

bool Schedules::due() const {
  return !going_ && line_.due();
}

Wake Schedules::wake() const {
  Wake wake;
  wake.working = !line_.claimed().empty();
  // If max_running run, the end of a run begins the next due row.
  if (!line_.full()) wake.at_ms = line_.moment();
  wake.needs_person = table_.needs_person();
  return wake;
}

std::size_t Schedules::running() const {
  return line_.claimed().size();
}

std::size_t Schedules::size() const {
  return size_;
}

std::vector<Schedules::Note> Schedules::take_notes() {
  return std::exchange(notes_, {});
}

}  // namespace hearth::durable
