#pragma once
// The mock host's hearth.schedule/1. Simpler than a server: cron runs only by hand (Host::fire()),
// expressions and zones are hardly looked at, runs have no deadline, and `overlap` allow is taken
// for queue.

#include <hearth/ext/schedule.h>
#include <hearth/testing/caller.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hearth::testing::detail {

// Reads the retry options of a request; zeros mean the defaults. A text says what is wrong.
inline std::string read_request_retry(std::uint32_t max_attempts, std::uint64_t base_ms,
                                      std::uint64_t max_ms, RetryOptions& options) {
  if (max_attempts != 0) options.max_attempts = static_cast<int>(max_attempts);
  if (base_ms != 0)
    options.base_delay = std::chrono::milliseconds(static_cast<std::int64_t>(base_ms));
  if (max_ms != 0) options.max_delay = std::chrono::milliseconds(static_cast<std::int64_t>(max_ms));
  try {
    hearth::detail::check_retry(options);
    return {};
  } catch (const Error& error) {
    return error.what();
  }
}

// The callback and the payload of schedules and queue items. A text says what is wrong.
inline std::string read_request_call(hearth_bytes callback, hearth_bytes payload, std::string& name,
                                     Json& value) {
  if (callback.len == 0 || callback.len > 256 || !is_utf8(view(callback)))
    return "a callback's name is 1 to 256 bytes of UTF-8";
  name = view(callback);
  if (payload.len == 0) return {};
  if (!is_json(view(payload))) return "the payload is not JSON";
  value = hearth::detail::parse_record(view(payload));
  return {};
}

inline ScheduleRow* find_schedule(AgentRecord& agent, std::string_view id) {
  auto& all = agent.durable.schedules;
  const auto row =
      std::find_if(all.begin(), all.end(), [&](const auto& it) { return it.id == id; });
  return row == all.end() ? nullptr : &*row;
}

inline std::string read_schedule_request(const hearth_schedule_request& request, std::int64_t now,
                                         ScheduleRow& row) {
  std::string problem =
      read_request_call(request.callback, request.payload, row.callback, row.payload);
  if (problem.empty())
    problem = read_request_retry(request.max_attempts, request.retry_base_ms, request.retry_max_ms,
                                 row.retry);
  if (!problem.empty()) return problem;
  if (request.misfire > HEARTH_MISFIRE_ALL || request.overlap > HEARTH_OVERLAP_ALLOW)
    return "unknown misfire or overlap policy";
  if (request.misfire_limit > 1'000) return "misfire_limit: 1 to 1000";
  row.misfire = static_cast<Misfire>(request.misfire);
  if (request.misfire_limit != 0) row.misfire_limit = request.misfire_limit;
  row.overlap = static_cast<Overlap>(request.overlap);
  row.fixed_rate = (request.flags & HEARTH_SCHEDULE_FIXED_RATE) != 0;
  row.created_at_ms = now;
  switch (request.type) {
    case HEARTH_SCHEDULE_DELAY:
      if (request.when_ms < 0) return "the delay is negative";
      row.length_ms = request.when_ms;
      row.due_ms = now + request.when_ms;
      break;
    case HEARTH_SCHEDULE_AT:
      if (request.when_ms < 0) return "the date is before 1970";
      row.due_ms = request.when_ms;
      break;
    case HEARTH_SCHEDULE_INTERVAL:
      if (request.when_ms < 1) return "an interval is 1 ms or more";
      row.length_ms = request.when_ms;
      row.due_ms = now + request.when_ms;
      break;
    case HEARTH_SCHEDULE_CRON:
      row.cron = view(request.cron);
      row.time_zone = request.time_zone.len == 0 ? "UTC" : std::string(view(request.time_zone));
      if (row.cron.find(' ') == std::string::npos && !row.cron.starts_with('@'))
        return "a cron expression has 5 or 6 fields";
      break;
    default: return "unknown type of schedule";
  }
  row.type = static_cast<ScheduleType>(request.type);
  return {};
}

inline bool repeats(const ScheduleRow& old, const ScheduleRow& row) {
  return old.type == row.type && old.callback == row.callback && old.payload == row.payload &&
         old.cron == row.cron && old.time_zone == row.time_zone &&
         (row.type != ScheduleType::kInterval || old.length_ms == row.length_ms) &&
         !(old.running && old.one_shot()) && !old.dead;
}
// The dead one whose place the new one takes.
inline bool replaces(const ScheduleRow& row, ScheduleRow old) {
  return std::exchange(old.dead, false) && repeats(old, row);
}

inline hearth_status create_schedule(const hearth_host* host, hearth_agent agent,
                                     const hearth_schedule_request* request, hearth_bytes* record,
                                     std::uint32_t* created) {
  const Caller caller(host, agent);
  if (caller.bad()) return caller.status;
  if (caller.in_transaction()) return caller.fail_in_transaction();
  ScheduleRow row;
  const std::string problem = read_schedule_request(*request, caller.engine.wall_ms, row);
  if (!problem.empty()) return caller.fail(HEARTH_E_INVALID, problem);
  const bool idempotent = request->idempotent == HEARTH_IDEMPOTENT_YES ||
                          (request->idempotent == HEARTH_IDEMPOTENT_DEFAULT && !row.one_shot());
  auto& all = caller.agent->durable.schedules;
  const auto old =
      std::find_if(all.begin(), all.end(), [&](const auto& each) { return repeats(each, row); });
  *created = !idempotent || old == all.end() ? 1 : 0;
  if (*created == 0) return caller.lend(to_text(schedule_record(*old)), record);
  if (idempotent) {
    const auto dead =
        std::find_if(all.begin(), all.end(), [&](const auto& each) { return replaces(row, each); });
    if (dead != all.end()) all.erase(dead);
  }
  row.id = durable_id(caller.engine.next_number());
  all.push_back(row);
  return caller.lend(to_text(schedule_record(row)), record);
}

// Finds the row, then does `use` with it.
template <class Use>
hearth_status with_schedule(const hearth_host* host, hearth_agent agent, hearth_bytes id, Use use) {
  const Caller caller(host, agent);
  if (caller.bad()) return caller.status;
  ScheduleRow* const row = find_schedule(*caller.agent, view(id));
  if (!row) return caller.fail(HEARTH_E_NOT_FOUND, "no schedule has this id");
  return use(caller, *row);
}
inline hearth_status get_schedule(const hearth_host* host, hearth_agent agent, hearth_bytes id,
                                  hearth_bytes* record) {
  return with_schedule(host, agent, id, [&](const Caller& caller, const ScheduleRow& row) {
    return caller.lend(to_text(schedule_record(row)), record);
  });
}
inline hearth_status list_schedules(const hearth_host* host, hearth_agent agent,
                                    const hearth_schedule_filter* filter, hearth_bytes* records) {
  const Caller caller(host, agent);
  if (caller.bad()) return caller.status;
  std::vector<ScheduleRow> rows = caller.agent->durable.schedules;
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
  std::sort(rows.begin(), rows.end(), [](const ScheduleRow& a, const ScheduleRow& b) {
    return std::pair(a.due_ms.value_or(kNever), a.id) < std::pair(b.due_ms.value_or(kNever), b.id);
  });
  Json list = Json::array();
  bool after = filter->after.len == 0;
  for (const ScheduleRow& row : rows) {
    if (!after) {
      after = row.id == view(filter->after);
      continue;
    }
    const Json record = schedule_record(row);
    const bool timed = filter->from_ms != 0 || filter->until_ms != 0;
    if ((filter->type != 0 && filter->type != static_cast<std::uint32_t>(row.type)) ||
        (filter->callback.len != 0 && view(filter->callback) != row.callback) ||
        (filter->state.len != 0 && record.at("state") != std::string(view(filter->state))) ||
        (timed && !row.due_ms) ||
        (filter->from_ms != 0 && row.due_ms.value_or(0) < filter->from_ms) ||
        (filter->until_ms != 0 && row.due_ms.value_or(0) >= filter->until_ms))
      continue;
    if (list.size() < (filter->limit == 0 ? 100 : filter->limit)) list.push_back(record);
  }
  return caller.lend(to_text(list), records);
}
inline hearth_status cancel_schedule(const hearth_host* host, hearth_agent agent, hearth_bytes id) {
  return with_schedule(host, agent, id, [&](const Caller& caller, const ScheduleRow& row) {
    if (caller.in_transaction()) return caller.fail_in_transaction();
    std::erase_if(caller.agent->durable.schedules,
                  [&, gone = row.id](const ScheduleRow& each) { return each.id == gone; });
    return hearth_status{HEARTH_OK};
  });
}
inline hearth_status pause_schedule(const hearth_host* host, hearth_agent agent, hearth_bytes id,
                                    std::uint32_t paused) {
  return with_schedule(host, agent, id, [&](const Caller& caller, ScheduleRow& row) {
    if (caller.in_transaction()) return caller.fail_in_transaction();
    row.paused = paused != 0;
    return hearth_status{HEARTH_OK};
  });
}
inline hearth_status retry_schedule(const hearth_host* host, hearth_agent agent, hearth_bytes id) {
  return with_schedule(host, agent, id, [&](const Caller& caller, ScheduleRow& row) {
    if (caller.in_transaction()) return caller.fail_in_transaction();
    if (row.running || (row.missing == 0 && !row.dead))
      return caller.fail(HEARTH_E_NOT_FOUND, "no missing or dead schedule has this id");
    row.dead = false;
    row.interruptions = row.attempts = row.missing = 0;
    row.failures = 0;
    row.last_error.reset();
    row.wait_until_ms = 0;
    row.due_ms = caller.engine.wall_ms;
    return hearth_status{HEARTH_OK};
  });
}

inline constexpr hearth_schedule_v1 kSchedule = {&create_schedule, &get_schedule,
                                                 &list_schedules,  &cancel_schedule,
                                                 &pause_schedule,  &retry_schedule};

// ---- runs ---------------------------------------------------------------------------------------

// The run is over, or was skipped: when is the next?
inline void advance_schedule(AgentRecord& agent, ScheduleRow& row, std::int64_t now) {
  row.attempts = 0;
  row.wait_until_ms = 0;
  if (row.one_shot()) {
    std::erase_if(agent.durable.schedules,
                  [id = row.id](const ScheduleRow& each) { return each.id == id; });
  } else if (row.type == ScheduleType::kCron) {
    row.due_ms.reset();
  } else if (!row.fixed_rate) {
    row.due_ms = now + row.length_ms;
  } else {
    row.due_ms = row.due_ms.value_or(now) + row.length_ms;
    const std::int64_t late = now - row.due_ms.value_or(now);
    if (row.misfire == Misfire::kAll || late < 0) return;
    const std::int64_t passed = late / row.length_ms;  // but for the last one
    *row.due_ms += passed * row.length_ms;
    if (row.overlap == Overlap::kSkip) *row.due_ms += row.length_ms;
  }
}

inline void end_schedule(Engine& engine, AgentRecord& agent, const std::string& id,
                         std::int64_t began_ms, const CallRecord& ended) {
  ScheduleRow* const row = find_schedule(agent, id);
  if (!row) return;  // cancelled meanwhile
  row->running = false;
  row->interruptions = 0;
  row->last_run_ms = began_ms;
  if (ended.status == HEARTH_E_NOT_FOUND || ended.status == HEARTH_E_UNSUPPORTED) {
    row->last_error = "the class has no such callback";
    row->missing_in_activation = agent.activations;
    row->wait_until_ms = engine.wall_ms + (std::int64_t{1'000} << std::min(row->missing++, 8));
    engine.write_log("warn schedule " + row->callback + ": " + ended.body);
    return;
  }
  ++row->runs;
  row->missing = 0;
  if (ended.status == HEARTH_OK) {
    row->missed = 0;
    row->last_error.reset();
    return advance_schedule(agent, *row, engine.wall_ms);
  }
  row->last_error = ended.body;
  ++row->failures;
  if (++row->attempts >= row->retry.max_attempts)
    return advance_schedule(agent, *row, engine.wall_ms);
  row->wait_until_ms =
      engine.wall_ms +
      hearth::detail::retry_delay(row->retry, row->attempts, engine.random()).count();
}

// What passed while nothing could run it. False: this occurrence is left out.
inline bool count_missed(AgentRecord& agent, ScheduleRow& row, std::int64_t now) {
  if (row.one_shot() || row.attempts > 0 || row.missing > 0) return true;
  const std::int64_t late = now - row.due_ms.value_or(now);
  if (row.misfire == Misfire::kSkip && late > 60'000) {
    ++row.missed;
    advance_schedule(agent, row, now);
    return false;
  }
  if (!row.fixed_rate) return true;
  const std::int64_t passed = late / row.length_ms;
  if (row.misfire == Misfire::kOnce) {
    row.missed = static_cast<std::uint64_t>(passed);
  } else if (passed >= row.misfire_limit) {
    const std::int64_t dropped = passed + 1 - row.misfire_limit;
    row.missed += static_cast<std::uint64_t>(dropped);
    *row.due_ms += dropped * row.length_ms;
  }
  return true;
}

inline bool schedule_is_due(const AgentRecord& agent, const ScheduleRow& row, std::int64_t now) {
  if (row.missing > 0 && agent.instance && agent.started && !row.running && !row.dead &&
      !row.paused && row.missing_in_activation != agent.activations)
    return true;
  const auto ready = row.ready_ms();
  return ready && *ready <= now;
}

inline constexpr int kMaxInterruptions =
    10;  // kills in a row in its runs until a row is dead, as on a server

// Begins the run that is due first, or finds it dead. False if none is due.
inline bool step_schedules(Engine& engine, AgentRecord& agent) {
  ScheduleRow* first = nullptr;
  for (ScheduleRow& row : agent.durable.schedules) {
    if (!schedule_is_due(agent, row, engine.wall_ms)) continue;
    if (!first || row.due_ms.value_or(0) < first->due_ms.value_or(0)) first = &row;
  }
  if (!first) return false;
  ScheduleRow& row = *first;
  if (row.interruptions >= kMaxInterruptions) {
    row.dead = true;
    row.due_ms.reset();
    row.last_error = "interrupted again and again before it came to an end";
    engine.write_log("warn schedule " + row.callback + ": " + *row.last_error + ": it is dead");
    return true;
  }
  if (!count_missed(agent, row, engine.wall_ms)) return true;
  row.running = true;
  const std::int64_t due = row.due_ms.value_or(engine.wall_ms);
  const Json body = {
      {"id", row.id},
      {"type", std::string(hearth::detail::word_of(hearth::detail::kScheduleTypes, row.type))},
      {"payload", row.payload},
      {"scheduled_for", due},
      {"late_ms", std::max<std::int64_t>(0, engine.wall_ms - due)},
      {"attempt", row.attempts + 1},
      {"missed", row.missed}};
  auto call = std::make_shared<CallRecord>();
  call->kind = HEARTH_EVENT_SCHEDULE;
  call->then = [&engine, &agent, id = row.id, began = engine.wall_ms](const CallRecord& ended) {
    end_schedule(engine, agent, id, began, ended);
  };
  engine.send(agent, call, std::string(row.callback), to_text(body), 0);
  return true;
}

}  // namespace hearth::testing::detail
