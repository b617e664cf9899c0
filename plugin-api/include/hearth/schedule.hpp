#pragma once
// Schedules: calls that an agent gives itself for later, stored like the agent's data.
//
//     static void methods(hearth::Methods<Reminder>& m) {
//       m.callback("remind", &Reminder::remind);
//     }
//     void remind(const std::string& text) { broadcast(text); }
//
//     schedule(std::chrono::minutes(10), "remind", "tea is ready");
//     schedule(hearth::Cron("0 9 * * mon-fri", "Europe/Berlin"), "remind", "stand up");
//
// Promises  Written with the running turn. At its time the agent is woken, after a restart too, and
//           the callback is called with the payload: at least once. A run that a crash interrupts
//           is begun again. A callback that throws is retried as the retry options say.
// Order     Schedules that are due together begin in the order of their times; one that waits does
//           not hold up the others.
// Names     The callback's name may be one that only the next version of the class has: the
//           schedule then waits in the state "missing", and the log says so.
// Bounded   The class's YAML: schedules.max_schedules, schedules.timeout. A payload:
//           limits.max_value.
// Failure   Error(INVALID) for invalid times; HostError: INVALID (cron, zone; while a transaction()
//           is open), LIMIT.

#include <hearth/callback.hpp>
#include <hearth/ext/schedule.h>
#include <hearth/option.hpp>
#include <hearth/retry.hpp>
#include <hearth/time.hpp>

#include <array>
#include <chrono>
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hearth {

// A cron expression of 5 fields, or 6 with seconds first, and an IANA time zone. Without a zone:
// UTC. ext/schedule.h has its syntax, and the rules when clocks are put forward or back.
struct Cron {
  explicit Cron(std::string cron_expression, std::string iana_zone = {})
      : expression(std::move(cron_expression)), time_zone(std::move(iana_zone)) {}
  std::string expression;
  std::string time_zone;
};

enum class ScheduleType : std::uint32_t {
  kDelay = HEARTH_SCHEDULE_DELAY,
  kAt = HEARTH_SCHEDULE_AT,
  kCron = HEARTH_SCHEDULE_CRON,
  kInterval = HEARTH_SCHEDULE_INTERVAL,
};

// Occurrences whose time passed while they could not run.
enum class Misfire : std::uint32_t {
  kOnce = HEARTH_MISFIRE_ONCE,  // one run for all of them
  kSkip = HEARTH_MISFIRE_SKIP,  // no run if it is more than a minute late
  kAll = HEARTH_MISFIRE_ALL,    // each, oldest first, the last misfire_limit of them
};

// An occurrence whose time comes while the last one still runs.
enum class Overlap : std::uint32_t {
  kSkip = HEARTH_OVERLAP_SKIP,    // is left out
  kQueue = HEARTH_OVERLAP_QUEUE,  // one waits and runs right after it
  kAllow = HEARTH_OVERLAP_ALLOW,  // runs beside it
};

enum class ScheduleState : std::uint8_t {
  kWaiting,
  kRunning,
  kPaused,
  // The class has no such callback (yet), or cannot read the payload; or the server cannot read its
  // time zones now.
  kMissing,
  kDead,  // given up: revive_schedule() begins again, an idempotent request replaces it
};

struct ScheduleOptions {
  // If a schedule like this one waits, it is given instead of a second one; a dead one is replaced.
  // Like: the same callback and payload, and for cron the same expression and zone, for intervals
  // the same length. nullopt: yes for cron and intervals, no for the others.
  std::optional<bool> idempotent = std::nullopt;
  Misfire misfire = Misfire::kOnce;
  NumberOption<std::uint32_t> misfire_limit = 10;
  Overlap overlap = Overlap::kSkip;
  // Intervals count from due time to due time, not from the end of a run to the next begin.
  bool fixed_rate = false;
  // For one run; nullopt: the class's, Agent::retry_defaults(). A stored schedule cannot have
  // should_retry.
  std::optional<RetryOptions> retry = std::nullopt;
};

// A schedule as it is stored.
struct Schedule {
  std::string id;
  std::string callback;
  Json payload;
  ScheduleType type = ScheduleType::kDelay;
  std::optional<Time> time;  // when it is due next
  std::chrono::milliseconds delay{0};
  std::chrono::milliseconds interval{0};
  std::string cron;
  std::string time_zone;
  bool fixed_rate = false;
  RetryOptions retry;
  ScheduleState state = ScheduleState::kWaiting;
  Time created_at;
  std::uint64_t runs = 0;
  std::uint64_t failures = 0;
  std::optional<Time> last_run;
  std::optional<std::string> last_error;
  bool created = false;  // by the call that gave it; false: it existed before
};

// The filter of list_schedules(). A field with its default does not restrict.
struct ScheduleFilter {
  std::optional<ScheduleType> type = std::nullopt;
  std::string callback = {};
  std::optional<ScheduleState> state = std::nullopt;
  std::optional<Time> from = std::nullopt;   // next due at or after
  std::optional<Time> until = std::nullopt;  // next due before
  std::string after = {};                    // an id: only schedules after it in the list
  std::uint32_t limit = 100;                 // 1 to 1000
};

// A run of a schedule. A callback may take it as its last parameter: `void remind(std::string text,
// const ScheduleRun& run)`.
// Lifetime  Until the callback has ended, waits included.
struct ScheduleRun {
  std::string id;
  std::string callback;
  ScheduleType type = ScheduleType::kDelay;
  Time scheduled_for;
  std::chrono::milliseconds late{0};
  int attempt = 1;           // 1, 2, ... of this occurrence
  std::uint64_t missed = 0;  // occurrences that this run stands for, or that were skipped before it
};

namespace detail {

inline constexpr std::array<std::pair<ScheduleType, std::string_view>, 4> kScheduleTypes = {
    {{ScheduleType::kDelay, "delay"},
     {ScheduleType::kAt, "at"},
     {ScheduleType::kCron, "cron"},
     {ScheduleType::kInterval, "interval"}}};
inline constexpr std::array<std::pair<ScheduleState, std::string_view>, 5> kScheduleStates = {
    {{ScheduleState::kWaiting, "waiting"},
     {ScheduleState::kRunning, "running"},
     {ScheduleState::kPaused, "paused"},
     {ScheduleState::kMissing, "missing"},
     {ScheduleState::kDead, "dead"}}};

Schedule read_schedule(const Json& record);

ScheduleRun read_schedule_run(std::string_view callback, const Json& event);

inline const hearth_schedule_v1& schedule_table(const Activation& activation) {
  return need(activation.tables().schedule, HEARTH_EXT_SCHEDULE);
}
std::optional<Schedule> find_schedule(const Activation& activation, std::string_view id);
bool pause_schedule_row(const Activation& activation, std::string_view id, std::uint32_t paused);

// The part of Agent for schedules. Its private names are ones that no agent class is likely to use.
template <class Self>
class ScheduleCalls {
 public:
  // Calls `callback` with `payload`: after a delay, which may be a fraction of a second, ...
  template <class Rep, class Period>
  Schedule schedule(std::chrono::duration<Rep, Period> delay, std::string_view callback,
                    const Json& payload = nullptr, const ScheduleOptions& options = {}) {
    hearth_schedule_request request = {};
    request.type = HEARTH_SCHEDULE_DELAY;
    request.when_ms = to_milliseconds(delay, "delay");
    return create_schedule(request, callback, payload, options);
  }
  // ... at a point in time (at once, if it has passed), ...
  template <class Duration>
  Schedule schedule(std::chrono::sys_time<Duration> at, std::string_view callback,
                    const Json& payload = nullptr, const ScheduleOptions& options = {}) {
    hearth_schedule_request request = {};
    request.type = HEARTH_SCHEDULE_AT;
    request.when_ms = to_milliseconds(at.time_since_epoch(), "date");
    return create_schedule(request, callback, payload, options);
  }
  // ... or whenever the clock of a time zone matches the expression.
  Schedule schedule(const Cron& cron, std::string_view callback, const Json& payload = nullptr,
                    const ScheduleOptions& options = {}) {
    hearth_schedule_request request = {};
    request.type = HEARTH_SCHEDULE_CRON;
    request.cron = slice(std::string_view(cron.expression));
    request.time_zone = slice(std::string_view(cron.time_zone));
    return create_schedule(request, callback, payload, options);
  }
  // Repeatedly. The first time is `interval` from now; each next time is `interval` after the end
  // of a run.
  template <class Rep, class Period>
  Schedule schedule_every(std::chrono::duration<Rep, Period> interval, std::string_view callback,
                          const Json& payload = nullptr, const ScheduleOptions& options = {}) {
    hearth_schedule_request request = {};
    request.type = HEARTH_SCHEDULE_INTERVAL;
    request.when_ms = to_milliseconds(interval, "interval");
    return create_schedule(request, callback, payload, options);
  }
  template <std::integral Number, class... Rest>
  void schedule(Number /*when*/, std::string_view /*callback*/, const Rest&... /*rest*/) {
    need_unit<Number>();
  }
  template <std::integral Number, class... Rest>
  void schedule_every(Number /*interval*/, std::string_view /*callback*/, const Rest&... /*rest*/) {
    need_unit<Number>();
  }
  template <class When, MakesNoJson Payload, class... Rest>
  void schedule(const When& /*when*/, std::string_view /*callback*/, const Payload& /*payload*/,
                const Rest&... /*rest*/) {
    need_json<Payload>();
  }
  template <class When, MakesNoJson Payload, class... Rest>
  void schedule_every(const When& /*interval*/, std::string_view /*callback*/,
                      const Payload& /*payload*/, const Rest&... /*rest*/) {
    need_json<Payload>();
  }

  [[nodiscard]] std::optional<Schedule> get_schedule(std::string_view id) {
    return find_schedule(activation_of_self(), id);
  }
  // Next due first, those that are never due last.
  [[nodiscard]] std::vector<Schedule> list_schedules(const ScheduleFilter& filter = {});
  // False: no schedule has this id. A run in progress goes on to its end.
  bool cancel_schedule(std::string_view id) {
    Activation& live = activation_of_self();
    const hearth_status status = schedule_table(live).cancel(live.host(), live.id(), slice(id));
    return found(live, status, "cancel schedule");
  }
  // No run begins until it is resumed; occurrences missed meanwhile count as a misfire. False: no
  // schedule has this id.
  bool pause_schedule(std::string_view id) {
    return pause_schedule_row(activation_of_self(), id, 1);
  }
  bool resume_schedule(std::string_view id) {
    return pause_schedule_row(activation_of_self(), id, 0);
  }
  // Makes a missing or dead schedule due now. False: no such schedule.
  bool revive_schedule(std::string_view id) {
    Activation& live = activation_of_self();
    return found(live, schedule_table(live).retry(live.host(), live.id(), slice(id)),
                 "retry schedule");
  }

 private:
  friend Self;
  ScheduleCalls() = default;
  [[nodiscard]] Activation& activation_of_self() { return static_cast<Self*>(this)->activation(); }
  Schedule create_schedule(hearth_schedule_request& request, std::string_view callback,
                           const Json& payload, const ScheduleOptions& options);
};

template <class Self>
Schedule ScheduleCalls<Self>::create_schedule(hearth_schedule_request& request,
                                              std::string_view callback, const Json& payload,
                                              const ScheduleOptions& options) {
  Activation& live = activation_of_self();
  need_callback(live, callback, true);
  const StoredRetry retry =
      stored_retry(options.retry, [this] { return static_cast<Self*>(this)->retry_defaults(); });
  const std::string text = to_text(payload);
  request.struct_size = sizeof request;
  request.callback = slice(callback);
  request.payload = slice(std::string_view(text));
  request.idempotent = !options.idempotent   ? HEARTH_IDEMPOTENT_DEFAULT
                       : *options.idempotent ? HEARTH_IDEMPOTENT_YES
                                             : HEARTH_IDEMPOTENT_NO;
  request.misfire = static_cast<std::uint32_t>(options.misfire);
  if (options.misfire == Misfire::kAll) request.misfire_limit = options.misfire_limit;
  request.overlap = static_cast<std::uint32_t>(options.overlap);
  request.flags = options.fixed_rate ? std::uint32_t{HEARTH_SCHEDULE_FIXED_RATE} : 0U;
  request.max_attempts = retry.max_attempts;
  request.retry_base_ms = retry.base_ms;
  request.retry_max_ms = retry.max_ms;
  hearth_bytes record = {nullptr, 0};
  std::uint32_t created = 0;
  live.check(schedule_table(live).create(live.host(), live.id(), &request, &record, &created),
             "schedule");
  Schedule schedule = read_schedule(parse_record(view(record)));
  schedule.created = created != 0;
  return schedule;
}

template <class Self>
std::vector<Schedule> ScheduleCalls<Self>::list_schedules(const ScheduleFilter& filter) {
  hearth_schedule_filter wanted = {};
  wanted.struct_size = sizeof wanted;
  if (filter.type) wanted.type = static_cast<std::uint32_t>(*filter.type);
  wanted.callback = slice(std::string_view(filter.callback));
  if (filter.state) wanted.state = slice(word_of(kScheduleStates, *filter.state));
  if (filter.from) wanted.from_ms = filter.from->time_since_epoch().count();
  if (filter.until) wanted.until_ms = filter.until->time_since_epoch().count();
  wanted.after = slice(std::string_view(filter.after));
  wanted.limit = filter.limit;
  hearth_bytes records = {nullptr, 0};
  Activation& live = activation_of_self();
  live.check(schedule_table(live).list(live.host(), live.id(), &wanted, &records),
             "list schedules");
  std::vector<Schedule> all;
  for (const Json& record : parse_record(view(records))) all.push_back(read_schedule(record));
  return all;
}

}  // namespace detail

// So that a method may return them: as the host's records, with times in Unix milliseconds.
void to_json(Json& json, const Schedule& schedule);

}  // namespace hearth
