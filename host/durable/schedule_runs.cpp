#include "durable/schedule_runs.hpp"

#include "durable/retry_policy.hpp"
#include "durable/schedule_rules.hpp"

#include <algorithm>
#include <chrono>

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

}  // namespace

void ScheduleRuns::load(bool has_code) {
  for (ScheduleRow& row : table_.load()) take_up(row, has_code);
}

std::int64_t ScheduleRuns::steady_ms() const {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             clock_.steady_now().time_since_epoch())
      .count();
}

void ScheduleRuns::store(ScheduleRow& row) {
  table_.update(row);
  line_.changed();
}

void ScheduleRuns::remove(const ScheduleRow& row) {
  table_.erase(row);
  line_.changed();
}

void ScheduleRuns::note(const ScheduleRow& row, ScheduleNote::What what, std::uint64_t count,
                        std::string reason) {
  notes_.push_back(ScheduleNote{row.schedule_id(), row.name, what, count, std::move(reason)});
}

// ---- what begins --------------------------------------------------------------------------------

std::optional<ScheduleRun> ScheduleRuns::begin_due() {
  if (going_ || line_.full()) return std::nullopt;
  line_.follow_clock();
  note_crowds(now_ms());
  const std::optional<ScheduleRow> row = line_.claim();
  (void)line_.take_given_up();  // give_up() has noted them
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

bool ScheduleRuns::admit(ScheduleRow& row) {
  const std::int64_t now = now_ms();
  if (row.over) {
    set_next_after_run(row, row.set_at_ms, now);
    return false;
  }
  if (!row.owed && !may_run(row, now)) return false;
  if (row.owed && row.begun_at == 0 && !row.is_one_shot()) {
    const auto missed = reckon_absence(row, row.set_at_ms, now, settings_);
    if (!missed) {
      give_up_or_put_off(row, missed.error(), now);
      return false;
    }
    if (*missed > 0) note(row, ScheduleNote::What::kMissed, *missed);
  }
  if (!row.may_overlap()) return true;
  spin_off(row, now);
  return false;
}

// So many rows of one callback are rarely intended: they pile up if each start makes a schedule.
void ScheduleRuns::note_crowds(std::int64_t now) {
  if (!table_.is_crowded(now, kCrowd)) {
    crowded_ = false;
    return;
  }
  if (crowded_) return;
  crowded_ = true;
  for (auto& [callback, crowd] : table_.crowds(now, kCrowd)) {
    notes_.push_back(ScheduleNote{std::move(crowd.id), std::move(callback),
                                  ScheduleNote::What::kManyDue,
                                  static_cast<std::uint64_t>(crowd.rows)});
  }
}

// Whether an occurrence that was never begun runs now, by the misfire policy. If not, the row has
// its next time, or was removed. If it runs, row.missed is the number of others that it stands for.
bool ScheduleRuns::may_run(ScheduleRow& row, std::int64_t now) {
  const bool too_late = row.misfire == Misfire::kSkip && now - row.scheduled_for > kTooLate;
  if (row.is_one_shot()) {
    if (!too_late || row.missing > 0) return true;
    note(row, ScheduleNote::What::kMissed, 1);
    remove(row);
    return false;
  }
  const Result<Recurrence> recurrence = recurrence_of(row, settings_);
  if (!recurrence) {
    give_up_or_put_off(row, recurrence.error(), now);
    return false;
  }
  const std::uint32_t others = recurrence->count(row.scheduled_for, now);
  if (too_late) {
    note(row, ScheduleNote::What::kMissed, counted(others + std::uint64_t{1}));
    const std::uint32_t missed = counted(std::uint64_t{row.missed} + others + 1);
    row.missing = 0;
    go_on(row, recurrence->next(now), now);
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
  if (left_out > 0) note(row, ScheduleNote::What::kMissed, left_out);
  return true;
}

// Makes a row for this run. If max_running runs of the schedule are unfinished, skips this one.
void ScheduleRuns::spin_off(ScheduleRow& row, std::int64_t now) {
  const Result<Recurrence> recurrence = recurrence_of(row, settings_);
  if (!recurrence) return give_up_or_put_off(row, recurrence.error(), now);
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
    table_.insert(child, table_.payload(row.seq));
  } else {
    note(row, ScheduleNote::What::kOverlapped, 1);
  }
  if (!catch_up(row, *recurrence, now)) {
    go_on(row, following(row, *recurrence, now), now);
  }
  store(row);
}

void ScheduleRuns::claim(ScheduleRow& row) {
  row.running = 1;
  row.owed = true;
  if (row.begun_at == 0) row.begun_at = now_ms();
  ++row.interruptions;  // ended() resets it
  store(row);
  row.run = ++last_run_;
  row.began_ms = steady_ms();
  if (std::optional<ScheduleRow> parent = table_.parent_of(row)) {
    ++parent->running;
    store(*parent);
  }
}

// ---- what comes after ---------------------------------------------------------------------------

void ScheduleRuns::give_up(ScheduleRow& row, std::string_view why) {
  note(row, ScheduleNote::What::kDead, 1, std::string(why));
  if (row.parent) {  // the author sees only the schedule: that is dead
    std::optional<ScheduleRow> parent = table_.parent_of(row);
    remove(row);
    if (!parent) return;
    row = std::move(*parent);
  }
  row.dead = true;
  row.over = false;
  row.next_at_ms = 0;
  row.last_error = why;
  store(row);
}

// If this machine cannot find out now when the row is due, the row waits and is tried again, like a
// row whose callback is missing.
void ScheduleRuns::give_up_or_put_off(ScheduleRow& row, const Error& why, std::int64_t now) {
  if (why.code != Errc::kUnavailable) return give_up(row, why.message);
  note(row, ScheduleNote::What::kPutOff, 1, why.message);
  ++row.missing;
  row.last_error = why.message;
  row.next_at_ms = now + back_off(row.missing, kMissingBase, kMissingCap, random_).count();
  store(row);
}

// As set_next(), and notes it if the row is never due again.
void ScheduleRuns::go_on(ScheduleRow& row, std::optional<std::int64_t> at, std::int64_t now) {
  if (set_next(row, at, now)) return;
  note(row, ScheduleNote::What::kDead, 1, row.last_error.value_or(""));
}

// The run ended at `ended_at`. The next time is computed for that moment, even if this is possible
// only now: occurrences that have passed since are missed like any others.
void ScheduleRuns::set_next_after_run(ScheduleRow& row, std::int64_t ended_at, std::int64_t now) {
  const Result<Recurrence> recurrence = recurrence_of(row, settings_);
  if (!recurrence) {
    row.owed = false;
    row.over = true;
    row.set_at_ms = ended_at;
    return give_up_or_put_off(row, recurrence.error(), now);
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
  if (left_out > 0) note(row, ScheduleNote::What::kOverlapped, left_out);
  go_on(row, queued ? recurrence->next(from) : following(row, *recurrence, ended_at), ended_at);
  row.owed = queued;
  row.missed = queued ? left_out : 0;
  store(row);
}

ScheduleEnd ScheduleRuns::ended(std::uint64_t number, TryOutcome outcome, std::string_view error) {
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
  std::optional<ScheduleRow> parent = table_.parent_of(*row);
  if (!parent) {
    remove(*row);
    return ScheduleEnd{*row->parent, row->name, ScheduleEnd::Next::kCancelled};
  }
  parent->last_run = began;
  parent->running = std::max(0, parent->running - 1);
  return end_child(*row, *parent, outcome, error);
}

ScheduleEnd ScheduleRuns::end_run(ScheduleRow& row, TryOutcome outcome, std::string_view error) {
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

ScheduleEnd ScheduleRuns::end_child(ScheduleRow& child, ScheduleRow& parent, TryOutcome outcome,
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

void ScheduleRuns::interrupt_on_purpose() {
  going_ = true;
  line_.give_back_all();
}

void ScheduleRuns::give_back(ScheduleRow& claimed) {
  std::optional<ScheduleRow> row = table_.row(claimed.id);
  if (!row) return;
  row->running = 0;
  row->interruptions = std::max(0, row->interruptions - 1);
  store(*row);
  std::optional<ScheduleRow> parent = table_.parent_of(*row);
  if (!parent) return;
  parent->running = 0;
  store(*parent);
}

// ---- the clock of the wall ----------------------------------------------------------------------

// Takes over a row of an earlier instance.
void ScheduleRuns::take_up(ScheduleRow& row, bool has_code) {
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
      reckon_anew(row, row.set_at_ms, now, settings_);
    }
    row.set_at_ms = now;
    changed = true;
  }
  if (row.begun_at != 0 && !row.is_one_shot() && !row.over) {
    const auto missed = reckon_absence(row, row.begun_at, now, settings_);
    if (missed && *missed > 0) note(row, ScheduleNote::What::kMissed, *missed);
    row.set_at_ms = missed ? now : std::min(row.begun_at, now);  // else admit() tries again
    row.begun_at = 0;
    changed = true;
  }
  if (changed) store(row);
}

void ScheduleRuns::follow(std::int64_t jump_ms) {
  if (table_.empty()) return;
  const std::int64_t now = now_ms();
  for (ScheduleRow& row : table_.load()) {
    const bool claimed = row.running > 0 && !row.may_overlap();
    if (row.waits_a_length()) {
      row.shift(jump_ms);
    } else if (jump_ms < 0 && row.is(ScheduleType::kCron) && !claimed) {
      reckon_anew(row, now - jump_ms, now, settings_);
    } else {
      continue;
    }
    store(row);
  }
}

}  // namespace hearth::durable
