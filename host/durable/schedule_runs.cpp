// The runs of schedules: how they begin and end. Other members: schedules.cpp.
#include "durable/back_off.hpp"
#include "durable/schedule_request.hpp"
#include "durable/schedules.hpp"

#include <algorithm>
#include <iterator>

namespace hearth::durable {
namespace {

constexpr std::int64_t kTooLate = 60'000;  // for misfire "skip"
constexpr std::int64_t kCrowd = 10;        // one-shot rows of one callback, due at once
// The wait before the next attempt when the class lacks the callback, or time zones cannot be read.
constexpr std::chrono::milliseconds kMissingBase{10'000};
constexpr std::chrono::milliseconds kMissingCap{3'600'000};

std::uint32_t counted(std::uint64_t missed) {
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(missed, kMostCounted));
}

void note_failure(ScheduleRow& row, std::string_view error) {
  ++row.failures;
  row.last_error = error.substr(0, kMaxJobErrorBytes);
}

// The occurrence after now.
std::optional<std::int64_t> following(const ScheduleRow& row, const Recurrence& recurrence,
                                      std::int64_t now) {
  const auto at = recurrence.next(recurrence.search_from(row.scheduled_for, now));
  // P4: no interval waits longer than its length, even if the clock was set back.
  if (at && row.fixed_rate) return std::min(*at, now + row.length_ms);
  return at;
}

}  // namespace

void Schedules::note(const ScheduleRow& row, Note::What what, std::uint64_t count,
                     std::string reason) {
  notes_.push_back(Note{row.schedule_id(), row.name, what, count, std::move(reason)});
}

// ---- what begins --------------------------------------------------------------------------------

std::optional<ScheduleRun> Schedules::begin_due() {
  if (going_ || line_.full()) return std::nullopt;
  line_.follow_clock();
  note_crowds(now_ms());
  const std::optional<ScheduleRow> row = line_.claim();
  (void)line_.take_given_up();  // die() has noted them
  if (!row) return std::nullopt;
  const std::int64_t now = now_ms();
  const std::int64_t late = std::max<std::int64_t>(0, now - row->scheduled_for);
  ScheduleRun run;
  run.run = row->run;
  run.id = row->schedule_id();
  run.row = row->seq;
  run.callback = row->name;
  run.body = run_body(*row, table_.payload(row->seq), late);
  run.attempt = row->attempts + 1;
  run.late_ms = late;
  run.missed = row->missed;
  return run;
}

void Schedules::give_up(ScheduleRow& row, std::string_view why) {
  die(row, std::string(why));
}

bool Schedules::admit(ScheduleRow& row) {
  const std::int64_t now = now_ms();
  if (row.over) {
    set_next_after_run(row, row.set_at_ms, now);
    return false;
  }
  if (!row.owed && !may_run(row, now)) return false;
  if (row.owed && row.begun_at == 0 && !row.is_one_shot()) {
    if (const Result<void> reckoned = reckon_absence(row, row.set_at_ms, now); !reckoned) {
      put_off(row, reckoned.error(), now);
      return false;
    }
  }
  if (!row.may_overlap()) return true;
  spin_off(row, now);
  return false;
}

// So many rows of one callback are rarely intended: they pile up if each start makes a schedule.
void Schedules::note_crowds(std::int64_t now) {
  if (!table_.is_crowded(now, kCrowd)) {
    crowded_ = false;
    return;
  }
  if (crowded_) return;
  crowded_ = true;
  for (auto& [callback, crowd] : table_.crowds(now, kCrowd)) {
    notes_.push_back(Note{std::move(crowd.id), std::move(callback), Note::What::kManyDue,
                          static_cast<std::uint64_t>(crowd.rows)});
  }
}

// Whether an occurrence that was never begun runs now, by the misfire policy. If not, the row has
// its next time, or was removed. If it runs, row.missed is the number of others that it stands for.
bool Schedules::may_run(ScheduleRow& row, std::int64_t now) {
  const bool too_late = row.misfire == Misfire::kSkip && now - row.scheduled_for > kTooLate;
  if (row.is_one_shot()) {
    if (!too_late || row.missing > 0) return true;
    note(row, Note::What::kMissed, 1);
    remove(row);
    return false;
  }
  const Result<Recurrence> recurrence = recurrence_of(row, settings_);
  if (!recurrence) {
    die_or_put_off(row, recurrence.error(), now);
    return false;
  }
  const std::uint32_t others = recurrence->count(row.scheduled_for, now);
  if (too_late) {
    note(row, Note::What::kMissed, counted(others + std::uint64_t{1}));
    const std::uint32_t missed = counted(std::uint64_t{row.missed} + others + 1);
    row.missing = 0;
    set_next(row, recurrence->next(now), now);
    row.missed = missed;
    store(row);
    return false;
  }
  if (others == 0) return true;
  std::uint32_t left_out = others;
  if (row.misfire == Misfire::kAll) {
    row.catch_up_until = now;
    left_out = others + 1 > row.misfire_limit ? others + 1 - row.misfire_limit : 0;
    if (left_out > 0) {
      const auto first = recurrence->first_of_last(row.misfire_limit, row.scheduled_for - 1, now);
      row.scheduled_for = first.value_or(row.scheduled_for);
    }
  }
  row.missed = counted(std::uint64_t{row.missed} + left_out);
  if (left_out > 0) note(row, Note::What::kMissed, left_out);
  return true;
}

// Makes a row for this run. If max_running runs of the schedule are unfinished, skips this one.
void Schedules::spin_off(ScheduleRow& row, std::int64_t now) {
  const Result<Recurrence> recurrence = recurrence_of(row, settings_);
  if (!recurrence) return die_or_put_off(row, recurrence.error(), now);
  if (table_.children(row.id).size() < settings_.max_running) {
    ScheduleRow child = row;
    child.id = make_uuid(random_);
    child.parent = row.id;
    child.owed = true;
    child.attempts = child.interruptions = child.fatal_attempts = 0;
    child.claims = child.failures = child.missing = child.running = 0;
    child.begun_at = child.catch_up_until = 0;
    child.last_error.reset();
    child.created_at_ms = child.set_at_ms = now;
    insert(child, table_.payload(row.seq));
  } else {
    note(row, Note::What::kOverlapped, 1);
  }
  if (!catch_up(row, *recurrence, now)) {
    set_next(row, following(row, *recurrence, now), now);
  }
  store(row);
}

void Schedules::claim(ScheduleRow& row) {
  row.running = 1;
  row.owed = true;
  if (row.begun_at == 0) row.begun_at = now_ms();
  ++row.interruptions;  // ended() resets it
  store(row);
  row.run = ++last_run_;
  row.began_ms = steady_ms();
  if (std::optional<ScheduleRow> parent = parent_of(row)) {
    ++parent->running;
    store(*parent);
  }
}

// ---- what comes after ---------------------------------------------------------------------------

void Schedules::die(ScheduleRow& row, std::string reason) {
  note(row, Note::What::kDead, 1, reason);
  if (row.parent) {  // the author sees only the schedule: that is dead
    std::optional<ScheduleRow> parent = parent_of(row);
    remove(row);
    if (!parent) return;
    row = std::move(*parent);
  }
  row.dead = true;
  row.over = false;
  row.next_at_ms = 0;
  row.last_error = std::move(reason);
  store(row);
}

// This machine cannot find out now when the row is due. The row waits and is tried again, like a
// row whose callback is missing.
void Schedules::put_off(ScheduleRow& row, const Error& why, std::int64_t now) {
  note(row, Note::What::kPutOff, 1, why.message);
  ++row.missing;
  row.last_error = why.message;
  row.next_at_ms = now + back_off(row.missing, kMissingBase, kMissingCap, random_).count();
  store(row);
}

void Schedules::die_or_put_off(ScheduleRow& row, const Error& why, std::int64_t now) {
  if (why.code == Errc::kUnavailable) return put_off(row, why, now);
  die(row, why.message);
}

// Sets the time of the next occurrence, and resets what belonged to the last one.
void Schedules::set_next(ScheduleRow& row, std::optional<std::int64_t> at, std::int64_t now) {
  row.attempts = 0;
  row.missed = 0;
  row.owed = false;
  row.over = false;
  row.begun_at = 0;
  row.set_at_ms = now;
  row.next_at_ms = at.value_or(0);
  if (at) {
    row.scheduled_for = *at;
    return;
  }
  row.dead = true;
  row.last_error = "it is never due again";
  note(row, Note::What::kDead, 1, *row.last_error);
}

// Goes on to the next missed occurrence, where these run one by one. False: there is none.
bool Schedules::catch_up(ScheduleRow& row, const Recurrence& recurrence, std::int64_t now) {
  if (row.catch_up_until <= row.scheduled_for) return false;
  const auto at =
      recurrence.first_of_last(row.misfire_limit, row.scheduled_for, row.catch_up_until);
  if (!at) return false;
  set_next(row, at, now);
  row.owed = true;
  return true;
}

// The run ended at `ended_at`. The next time is computed for that moment, even if this is possible
// only now: occurrences that have passed since are missed like any others.
void Schedules::set_next_after_run(ScheduleRow& row, std::int64_t ended_at, std::int64_t now) {
  const Result<Recurrence> recurrence = recurrence_of(row, settings_);
  if (!recurrence) {
    row.owed = false;
    row.over = true;
    row.set_at_ms = ended_at;
    return die_or_put_off(row, recurrence.error(), now);
  }
  if (row.over) {
    row.missing = 0;
    row.last_error.reset();
  }
  if (catch_up(row, *recurrence, ended_at)) return store(row);
  if (row.is(ScheduleType::kInterval) && !row.fixed_rate) {
    set_next(row, ended_at + row.length_ms, ended_at);
    return store(row);
  }
  // The misfire policy has handled the occurrences up to `from`: the beginning of this run, or of
  // the first of the occurrences that were run one by one.
  const bool was_caught_up = row.catch_up_until >= row.scheduled_for;
  const std::int64_t from =
      was_caught_up ? row.catch_up_until : std::max(row.scheduled_for, row.begun_at);
  const std::uint32_t overlapped = recurrence->count(from, ended_at);
  const bool queued = row.overlap == Overlap::kQueue && overlapped > 0;
  const std::uint32_t left_out = queued ? overlapped - 1 : overlapped;
  if (left_out > 0) note(row, Note::What::kOverlapped, left_out);
  set_next(row, queued ? recurrence->next(from) : following(row, *recurrence, ended_at), ended_at);
  row.owed = queued;
  row.missed = queued ? left_out : 0;
  store(row);
}

ScheduleEnd Schedules::ended(std::uint64_t number, TryOutcome outcome, std::string_view error) {
  line_.follow_clock();
  const auto found = std::ranges::find_if(
      line_.claimed(), [number](const auto& each) { return each.second.run == number; });
  if (found == line_.claimed().end()) return ScheduleEnd{{}, {}, ScheduleEnd::Next::kCancelled};
  const std::optional<ScheduleRow> claimed = line_.take(found->first);
  if (!claimed) return ScheduleEnd{{}, {}, ScheduleEnd::Next::kCancelled};
  std::optional<ScheduleRow> row = table_.row(claimed->id);
  if (!row) return ScheduleEnd{claimed->id, {}, ScheduleEnd::Next::kCancelled};
  const std::int64_t began = now_ms() - (steady_ms() - claimed->began_ms);
  row->running = 0;
  row->interruptions = 0;
  if (outcome == TryOutcome::kDone) row->fatal_attempts = 0;
  if (!row->parent) {
    row->last_run = began;
    return end_run(*row, outcome, error);
  }
  std::optional<ScheduleRow> parent = parent_of(*row);
  if (!parent) {
    remove(*row);
    return ScheduleEnd{*row->parent, row->name, ScheduleEnd::Next::kCancelled};
  }
  parent->last_run = began;
  parent->running = std::max(0, parent->running - 1);
  return end_child(*row, *parent, outcome, error);
}

ScheduleEnd Schedules::end_run(ScheduleRow& row, TryOutcome outcome, std::string_view error) {
  const std::int64_t now = now_ms();
  ScheduleEnd end{row.id, row.name, ScheduleEnd::Next::kWaiting};
  if (outcome == TryOutcome::kNeedsCode) {
    ++row.missing;
    row.last_error = error.empty() ? std::string("the class has no such callback")
                                   : std::string(error.substr(0, kMaxJobErrorBytes));
    row.set_at_ms = now;
    row.next_at_ms = now + back_off(row.missing, kMissingBase, kMissingCap, random_).count();
    row.owed = row.is_one_shot();
    row.begun_at = 0;
    store(row);
    end.next = ScheduleEnd::Next::kMissing;
    end.next_ms = row.next_at_ms;
    return end;
  }
  ++row.claims;
  row.missing = 0;
  row.last_error.reset();
  if (outcome != TryOutcome::kDone) {
    note_failure(row, error);
    if (outcome == TryOutcome::kFailed && ++row.attempts < row.retry.max_attempts) {
      row.set_at_ms = now;
      row.next_at_ms = now + retry_wait(row.retry, row.attempts, random_).count();
      store(row);
      end.next = ScheduleEnd::Next::kRetry;
      end.next_ms = row.next_at_ms;
      return end;
    }
  }
  if (row.is_one_shot()) {
    remove(row);
    end.next = ScheduleEnd::Next::kGone;
    return end;
  }
  set_next_after_run(row, now, now);
  end.next_ms = row.next_at_ms;
  return end;
}

ScheduleEnd Schedules::end_child(ScheduleRow& child, ScheduleRow& parent, TryOutcome outcome,
                                 std::string_view error) {
  if (outcome == TryOutcome::kNeedsCode) {
    // The schedule waits for its callback, beginning with the occurrence that did not find it.
    remove(child);
    if (parent.dead) {
      store(parent);
      return ScheduleEnd{parent.id, parent.name, ScheduleEnd::Next::kMissing};
    }
    parent.scheduled_for = std::min(parent.scheduled_for, child.scheduled_for);
    parent.attempts = 0;
    const int others = std::exchange(parent.running, 0);
    ScheduleEnd end = end_run(parent, outcome, error);
    parent.running = others;
    store(parent);
    return end;
  }
  ++parent.claims;
  parent.missing = 0;
  if (!parent.dead) parent.last_error.reset();  // of a dead one: the reason of its death
  if (outcome != TryOutcome::kDone) note_failure(parent, error);
  ScheduleEnd end = end_run(child, outcome, error);
  end.id = parent.id;
  if (end.next == ScheduleEnd::Next::kGone) {
    end.next = ScheduleEnd::Next::kWaiting;
    end.next_ms = parent.next_at_ms;
  }
  store(parent);
  return end;
}

void Schedules::interrupt_on_purpose() {
  going_ = true;
  line_.give_back_all();
}

void Schedules::give_back(ScheduleRow& claimed) {
  std::optional<ScheduleRow> row = table_.row(claimed.id);
  if (!row) return;
  row->running = 0;
  row->interruptions = std::max(0, row->interruptions - 1);
  store(*row);
  std::optional<ScheduleRow> parent = parent_of(*row);
  if (!parent) return;
  parent->running = 0;
  store(*parent);
}

}  // namespace hearth::durable
