/*
 * hearth.schedule/1: calls that an agent gives itself for later.
 *
 * A schedule is a row in the agent's database, written with the running turn. At its time the host
 * wakes the agent, after a restart too, and delivers HEARTH_EVENT_SCHEDULE. Delivery is at least
 * once: if a crash has interrupted a run, it is delivered again.
 *
 *   type      due                                         after a run
 *   DELAY     when_ms from now                            the row is removed
 *   AT        at the Unix time when_ms                    the row is removed
 *   CRON      at the next time that the expression names  the time after that one
 *   INTERVAL  when_ms from now                            when_ms after the end of the run; with
 *                                                         FIXED_RATE: after its due time
 *
 * While a savepoint of hearth.sql/1 is open, nothing is changed and no run is completed (INVALID).
 *
 * Times are milliseconds. Rows that are due together run in the order of their times, several at
 * once: a slow one does not hold up the others.
 *
 * If the machine's clock is set, CRON and AT follow it; DELAY, INTERVAL and waits for a retry keep
 * their length. A CRON time that the clock shows a second time is not run again, with two
 * exceptions: the hour field is a * or a step of it, or the clock was set back by more than three
 * hours.
 *
 * HEARTH_EVENT_SCHEDULE: asynchronous. name: the callback; body: JSON
 *   {"id": "...", "type": "delay|at|cron|interval", "payload": <JSON>, "scheduled_for": <ms>,
 *   "late_ms": <ms>,
 *    "attempt": <1, 2, ...>, "missed": <other occurrences that this run stands for, or that were
 *    skipped before it; 1000: or more>}
 *
 *   completed with           what happens
 *   OK                       it has run
 *   NOT_FOUND, UNSUPPORTED   the class has no such callback (yet); and
 *   UNREADABLE               it cannot read the payload: the row is kept in state "missing" and
 *                            reported; it is tried again when the agent starts again and after
 *                            growing waits
 *   FINAL                    no retry: the run has failed, as after the last attempt
 *   any other error          retried by the retry options; the same if no answer comes within the
 *                            class's schedules.timeout. After the last attempt the run has failed:
 *                            a one-shot row is removed, a recurring one goes on with its next time;
 *                            last_error says why
 *
 * A row whose runs crashed the process fibers.max_crashes (2) times is "dead". It is kept, with
 * the reason, until retry(), cancel(), or an idempotent request like it. A CRON row is also dead if
 * its zone does not exist any more. While the machine cannot read its time zones at all, such a row
 * is "missing", and tried again in the same way.
 *
 * Cron expressions: 5 fields (minute hour day month weekday), or 6 with seconds before them. Names
 * (jan, mon), ranges, lists, steps, ? as *, 0 and 7 for Sunday, and @yearly @annually @monthly
 * @weekly @daily @midnight @hourly @minutely. If both day and weekday leave out a value, either
 * suffices. Rejected are L, W and #, a step without a range (5/15 is 5-59/15), reversed ranges, and
 * dates that never come. In a time zone with summer time:
 *
 *   hour field          a local time that is skipped      a local time that comes twice
 *   a * or a step of it is left out                       runs twice
 *   any other           runs once, right after the gap    runs the first time only
 *
 * A record is JSON:
 *   {"id", "callback", "payload", "type", "time": <next due, ms, or null>, "delay_ms" |
 *   "interval_ms" | "cron" + "time_zone",
 *    "fixed_rate", "retry": {"max_attempts", "base_delay_ms", "max_delay_ms"}, "misfire",
 *    "misfire_limit", "overlap", "state": "waiting|running|paused|missing|dead", "created_at",
 *    "runs", "failures", "last_run": <ms or null>, "last_error": <text or null>}
 * runs: attempts that ended; failures: those of them that failed; last_run: when the last of them
 * began. If several states hold, the record has the first of: running, dead, paused, missing,
 * waiting.
 */
#ifndef HEARTH_EXT_SCHEDULE_H
#define HEARTH_EXT_SCHEDULE_H

#include <hearth/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HEARTH_EXT_SCHEDULE "hearth.schedule/1"

enum { HEARTH_EVENT_SCHEDULE = 12 };

/* hearth_schedule_request.type */
enum {
  HEARTH_SCHEDULE_DELAY = 1,
  HEARTH_SCHEDULE_AT = 2,
  HEARTH_SCHEDULE_CRON = 3,
  HEARTH_SCHEDULE_INTERVAL = 4
};

/* hearth_schedule_request.idempotent. If a waiting schedule is like the request, the request gives
 * that one instead of a second. Like: the same callback and payload, and for CRON the same
 * expression and zone, for INTERVAL the same length. Two schedules do not count: a dead one, which
 * is removed in the transaction that adds the new one; and one that is running now and will be over
 * with this run, so that a callback may schedule itself again. */
enum {
  HEARTH_IDEMPOTENT_DEFAULT = 0, /* yes for CRON and INTERVAL, no for DELAY and AT */
  HEARTH_IDEMPOTENT_YES = 1,
  HEARTH_IDEMPOTENT_NO = 2
};

/* hearth_schedule_request.misfire: occurrences whose time passed while they could not run: the
 * agent was not awake, the schedule was paused, its callback missing. A run that has begun is run
 * to its end, however late. */
enum {
  HEARTH_MISFIRE_ONCE = 0, /* one run for all of them */
  HEARTH_MISFIRE_SKIP =
      /* no run if it is more than a minute late: the next occurrence runs at its own time, a
       * one-shot row is removed */
      1,
  HEARTH_MISFIRE_ALL = 2 /* each, oldest first, the last misfire_limit of them */
};

/* hearth_schedule_request.overlap: an occurrence whose time comes while the last run is in progress
 * or waits for a retry. For CRON and for INTERVAL with FIXED_RATE; another INTERVAL counts from the
 * end of a run. */
enum {
  HEARTH_OVERLAP_SKIP = 0,  /* is left out */
  HEARTH_OVERLAP_QUEUE = 1, /* one waits and runs right after it */
  HEARTH_OVERLAP_ALLOW =
      2 /* runs beside it, up to the class's schedules.max_running; more are left out */
};

/* hearth_schedule_request.flags */
enum { HEARTH_SCHEDULE_FIXED_RATE = 1 };

typedef struct hearth_schedule_request {
  uint32_t struct_size;
  uint32_t type;         /* HEARTH_SCHEDULE_* */
  hearth_bytes callback; /* 1 to 256 bytes of UTF-8 */
  hearth_bytes payload;  /* JSON; empty: null */
  int64_t
      /* DELAY: from now, 0 or more; AT: Unix time; both up to the year 9999; INTERVAL: 1 ms to 366
       * days */
      when_ms;
  hearth_bytes cron;      /* CRON: the expression */
  hearth_bytes time_zone; /* CRON: IANA name ("Europe/Berlin"); empty: UTC */
  uint32_t idempotent;    /* HEARTH_IDEMPOTENT_* */
  uint32_t misfire;       /* HEARTH_MISFIRE_* */
  uint32_t misfire_limit; /* ALL: 1 to 1000; 0: 10 */
  uint32_t overlap;       /* HEARTH_OVERLAP_* */
  uint32_t flags;         /* HEARTH_SCHEDULE_FIXED_RATE */
  uint32_t max_attempts;  /* of one run, the first included; 0: 3 */
  uint64_t retry_base_ms; /* 0: 100; waits are random, below min(2^attempt * base, max) */
  uint64_t retry_max_ms;  /* 0: 3000 */
} hearth_schedule_request;

HEARTH_STATIC_ASSERT(sizeof(hearth_schedule_request) == 120, "layout");

/* The filter of list(). A zero or empty field does not restrict. */
typedef struct hearth_schedule_filter {
  uint32_t struct_size;
  uint32_t type; /* HEARTH_SCHEDULE_* */
  hearth_bytes callback;
  hearth_bytes state; /* "waiting", ... */
  int64_t from_ms;    /* next due at or after */
  int64_t until_ms;   /* next due before */
  hearth_bytes after; /* a record's id: only records after it in the list */
  uint32_t limit;     /* 1 to 1000; 0: 100 */
  uint32_t reserved;  /* 0 */
} hearth_schedule_filter;

HEARTH_STATIC_ASSERT(sizeof(hearth_schedule_filter) == 80, "layout");

typedef struct hearth_schedule_v1 {
  /* Makes a schedule, or finds the existing one that it would repeat (then *created is 0). *record
   * describes it. In both cases the agent will be awake when it is due. Errors: INVALID (time,
   * cron, zone, retry options, payload; last_error says which), LIMIT (too many, payload too
   * large), BUSY (the machine has no time zones), CLOSING, IO. [instance] */
  hearth_status (*create)(const hearth_host* host, hearth_agent agent,
                          const hearth_schedule_request* request, hearth_bytes* record,
                          uint32_t* created);

  /* NOT_FOUND. [instance] */
  hearth_status (*get)(const hearth_host* host, hearth_agent agent, hearth_bytes id,
                       hearth_bytes* record);

  /* *records: a JSON array, next due first, those never due last, then by age. It ends at 8 MiB: go
   * on after the last record until the array is empty. It is also empty if no record has the id
   * `after`. [instance] */
  hearth_status (*list)(const hearth_host* host, hearth_agent agent,
                        const hearth_schedule_filter* filter, hearth_bytes* records);

  /* The row is removed with this turn; a run in progress goes on to its end. NOT_FOUND.
   * [instance] */
  hearth_status (*cancel)(const hearth_host* host, hearth_agent agent, hearth_bytes id);

  /* paused 1: no run begins until paused 0; occurrences missed meanwhile count as a misfire.
   * NOT_FOUND. [instance] */
  hearth_status (*pause)(const hearth_host* host, hearth_agent agent, hearth_bytes id,
                         uint32_t paused);

  /* Makes a missing or dead schedule due now, with its failures counted from 0. NOT_FOUND: no
   * missing or dead one has this id, or it runs. [instance] */
  hearth_status (*retry)(const hearth_host* host, hearth_agent agent, hearth_bytes id);
} hearth_schedule_v1;

HEARTH_STATIC_ASSERT(sizeof(hearth_schedule_v1) == 48, "layout");

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* HEARTH_EXT_SCHEDULE_H */
