/*
 * hearth.fibers/1: durable work. A fiber is a record in the agent's database: the work (a name and
 * an input), how far it is (a checkpoint), and its outcome.
 *
 *   start -> the plugin works, calling stash after each step -> settle
 *
 * The record is on disk when start returns, each checkpoint when stash returns; the end is written
 * with the turn in which settle is called. While a fiber runs, the agent is kept alive. A caller
 * gets the record at once, looks it up later, and waits for it.
 *
 *   status       what is true                           leaves it by
 *   pending      accepted; its work begins, or waits    the work begins -> running
 *                for its lane, or begins again after    cancel -> aborted
 *                a failure at next_at
 *   running      its work runs in this instance         settle -> completed, error, aborted, or
 *                                                         pending while retries are left
 *                                                       cancel -> aborted
 *                                                       end of the instance -> recovering
 *   recovering   its work was interrupted; it is        resume -> running
 *                offered, or will be at next_at         the hook's outcome -> any settled status
 *                                                       the hook fails too often -> error (dead)
 *                                                       cancel -> aborted
 *   interrupted  settled: it was offered, and no work   resolve -> the outcome
 *                went on                                revive -> recovering
 *   completed    settled, with its result               retention
 *   error        settled, with its error; dead: 1 if    retention; if dead: resolve, revive
 *                recovery was given up
 *   aborted      settled, with the reason               retention
 *
 * A settled status is written in the transaction that ends the work, and only the table's steps
 * change it: finished work is never offered again, and a late end does not undo a cancel.
 *
 * Record    JSON: {"id", "name", "status", "key", "input", "metadata", "snapshot", "result",
 *           "error", "dead": <bool>, "created_at", "started_at", "completed_at",
 *           "attempts": <recoveries begun since the last progress>, "failures": <of the work>,
 *           "max_retries", "next_at"}. A missing value is null; times are Unix milliseconds. Some
 *           records have more members, named below, which are true.
 * Brief     Without HEARTH_FIBER_KEEP_RECORD a fiber is brief: "brief" in its record. The record is
 *           removed in the turn that settles it, without HEARTH_EVENT_FIBER_SETTLED, and its key is
 *           free again. If recovery gave the fiber up, it is dead: then the event comes, and the
 *           record is listed and kept for fibers.keep_failed.
 * Retention Kept records that are completed or aborted are removed fibers.keep_completed (24 h)
 *           after they were settled, records with an error after fibers.keep_failed (7 days), but
 *           never before their HEARTH_EVENT_FIBER_SETTLED. Interrupted and dead ones stay until
 *           they are removed.
 * Parents   A brief fiber with a parent is kept until the parent stashes or is settled. So a parent
 *           that is run again starts the same key again, and finds the value. A fiber with a kept
 *           record that is settled by then loses its key, if the key begins with the parent's id
 *           and a slash.
 * Recovery  A fiber is offered with HEARTH_EVENT_FIBER_RECOVERED if its work does not run in this
 *           instance: it was interrupted (after a crash, an eviction, a new version of the code;
 *           the host then wakes the agent), or it has failed and is to begin again. The plugin
 *           resumes the fiber inside the event and works on, or completes the event with an
 *           outcome. Completed with nothing, the fiber is let go: a kept one is "interrupted", a
 *           brief one is removed. After an error, or without an answer before the class's
 *           fibers.recovery_timeout, the fiber is offered again, after growing waits; after FINAL
 *           it is dead.
 * Attempts  After fibers.max_attempts offers without a new checkpoint that failed or crashed the
 *           process, and after fibers.max_recoveries offers in all, a fiber is dead: offered again
 *           only after revive. A checkpoint with other bytes than the one before is progress. An
 *           offer that the end of the process interrupts without a crash of its work counts only
 *           among the second.
 * Turns     A fiber with HEARTH_FIBER_TURN ("turn" in its record) is dead after
 *           fibers.max_turn_recoveries (5); a checkpoint does not reset the count, except
 *           with HEARTH_FIBER_RESET. The agent's
 *           clients that speak the protocol get a frame for each recovery:
 *             {"type":"session.status_rescheduled","turn":"...","reason":"recovery 2 of 5"}
 *           and two frames when the turn is dead:
 *             {"type":"session.error","turn":"...","error":{"type":"turn_interrupted",
 *              "retry_status":"exhausted","message":"..."}}
 *             {"type":"session.status_idle","turn":"...",
 *              "stop_reason":{"type":"retries_exhausted"}}
 *           A client that connects later gets the last of these frames of each turn that goes on.
 *           It also gets those of each turn that was given up and is still on record, unless a
 *           later turn has begun; at most 20 turns of each kind.
 * Lanes     Of the fibers of a lane ("lane" in the record) one runs at a time, in the order of
 *           their starts, also after a restart. start() accepts one whose lane is taken with the
 *           handle 0 and "accepted": true in the receipt. It is offered as a retry is, with the
 *           reason "lane", once all earlier ones are settled; that costs no attempt. A fiber holds
 *           its lane until it is settled: also while it is recovered, or waits for a retry or for
 *           another version. A revived fiber waits for its lane.
 * Unknown   If the event is refused with NOT_FOUND or UNSUPPORTED, or completed with NOT_FOUND,
 *           this version of the code does not know the name, or does not want to decide; with
 *           UNREADABLE, or if the work settles as NEEDS_CODE, it cannot read what an earlier
 *           version has stored, and is charged for it while it is on trial. The fiber then waits
 *           for another version ("waits_for_code" in its record). It costs no attempt and keeps
 *           nothing awake. It is listed, and offered again by each instance, and when the class's
 *           version changes, without a time limit.
 * Poison    A run that crashed the process counts: after fibers.max_crashes of them the fiber is
 *           dead. The count starts again when a run has worked for five minutes and then stashes
 *           another checkpoint. works_for says which fiber a run belongs to.
 *
 * HEARTH_EVENT_FIBER_RECOVERED: asynchronous. name: the fiber's name; body: JSON
 *   {"id": "...", "snapshot": <the last checkpoint or null>, "created_at": <ms>,
 *   "attempt": <1, 2, ...>, "record": <the record>, "reason": "interrupted" | "retry" | "lane"}
 * ("retry": the work failed in this or an earlier instance and is to begin again; "lane": it is to
 * begin.) Completed with
 * an outcome: {"status": "completed" | "error" | "aborted" | "interrupted", "result": <JSON>,
 * "error": "...", "reason": "...", "snapshot": <JSON>, "metadata": <JSON>}; only status is
 * required. "reason", 1 to 256 bytes, is a word for programs, where "error" is for people; it is a
 * member of the record. While a
 * savepoint of hearth.sql/1 is open the event cannot be completed (INVALID). Once the fiber was
 * resumed, the event has no deadline any more, and its outcome does not matter.
 *
 * HEARTH_EVENT_FIBERS_RECOVERED: asynchronous. Fibers were interrupted; it comes before the first
 * is offered. body: JSON [{"id", "name", "created_at", "attempt"}], oldest first. Completed with
 * {"order": ["id", ...], "parallel": <n>, "skip": ["id", ...]}: they are offered in that order
 * (those not named after them, oldest first), up to n at once (1 to 100); those of "skip" are not
 * offered but let go, as by a hook. Nothing, UNSUPPORTED or an error: oldest first, one at a time.
 * A crash during this event counts for no fiber if the event named several. After such a crash, or
 * the crash of a run, the agent is asked for each fiber alone before it is offered; so the fiber
 * that crashes becomes known.
 *
 * HEARTH_EVENT_FIBER_SETTLED: asynchronous. name: the fiber's name; body: the record, in a settled
 * status. It is delivered at least once: until it was completed with OK or UNSUPPORTED, after
 * growing waits, also after a restart. After fibers.max_crashes deliveries that crashed the process
 * the host stops: the log says fiber:never_told, and the record stays until it is removed.
 * A record that is replaced, revived or removed before is not delivered any more. If a caller waits
 * for such a record, the plugin reads it (inspect) and answers the caller before it calls remove(),
 * or start() with REPLACE.
 *
 * Tables: in the agent's database SQL may read cf_agents_fibers(fiber_id, name, status, snapshot,
 * ...) and cf_agents_runs(id, name, snapshot, created_at, ...), which lacks those that are settled.
 */
#ifndef HEARTH_EXT_FIBERS_H
#define HEARTH_EXT_FIBERS_H

#include <hearth/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HEARTH_EXT_FIBERS "hearth.fibers/1"

enum {
  HEARTH_EVENT_FIBER_RECOVERED = 11,
  HEARTH_EVENT_FIBER_SETTLED = 14,
  HEARTH_EVENT_FIBERS_RECOVERED = 15
};

/* A fiber that runs in this instance. */
typedef uint64_t hearth_fiber;

/* Statuses, as numbers where a function takes one. Bits, so that a filter can name several. */
enum {
  HEARTH_FIBER_PENDING = 1,
  HEARTH_FIBER_RUNNING = 2,
  HEARTH_FIBER_RECOVERING = 4,
  HEARTH_FIBER_INTERRUPTED = 8,
  HEARTH_FIBER_COMPLETED = 16,
  HEARTH_FIBER_ERROR = 32,
  HEARTH_FIBER_ABORTED = 64,
  /* For settle alone: */
  HEARTH_FIBER_FINAL_ERROR = 128, /* ERROR, and no retry can end better: none is made */
  HEARTH_FIBER_OUTCOME = 512,     /* the body is an outcome, as HEARTH_EVENT_FIBER_RECOVERED is
                                     completed with, but not "interrupted". No retry is made */
  HEARTH_FIBER_NEEDS_CODE = 256   /* the work cannot read its input, its checkpoint or a stored
                                     result: the fiber waits (Unknown) */
};

/* hearth_fiber_start.policy: the id or key names a record that is settled. */
enum {
  HEARTH_FIBER_JOIN = 0,          /* that record is the answer */
  HEARTH_FIBER_REJECT = 1,        /* CONFLICT */
  HEARTH_FIBER_REPLACE = 2,       /* that record is removed, and a new fiber begins */
  HEARTH_FIBER_REPLACE_FAILED = 3 /* JOIN if it is completed, else REPLACE */
};

/* hearth_fiber_start.flags */
enum {
  HEARTH_FIBER_KEEP_RECORD = 1,
  /* The caller can do the work of this name now. If id or key names a fiber that was interrupted
   * and need not wait, it goes on in this instance, as if it had been offered and resumed. */
  HEARTH_FIBER_TAKE_UP = 2,
  /* A turn: work that a client waits for, and that must not begin again without end. No parent. */
  HEARTH_FIBER_TURN = 4,
  /* Progress, a checkpoint that differs from the one before, resets the count of max_retries, and
   * of a turn's recoveries. */
  HEARTH_FIBER_RESET = 8
};

typedef struct hearth_fiber_start {
  uint32_t struct_size;
  uint32_t policy;       /* HEARTH_FIBER_JOIN, ... */
  uint32_t flags;        /* HEARTH_FIBER_KEEP_RECORD, ... */
  uint32_t max_retries;  /* how often the work begins again after a failure; 0: never */
  hearth_bytes name;     /* 1 to 256 bytes of UTF-8; recovery finds the code by it */
  hearth_bytes id;       /* 1 to 256 bytes; empty: the host makes one (36 characters) */
  hearth_bytes key;      /* idempotency key, 1 to 256 bytes; empty: none */
  hearth_bytes parent;   /* the id of the fiber that waits for this one; empty: none */
  hearth_bytes input;    /* JSON: what the work needs to begin anew; empty: null */
  hearth_bytes metadata; /* JSON, for people and lists; empty: null */
  /* 0: 1000; the wait doubles with each failure, plus up to a quarter at random */
  uint64_t retry_base_ms;
  uint64_t retry_max_ms; /* 0: 300000 */
  hearth_bytes lane;     /* 1 to 256 bytes; empty: none. Not with a parent */
} hearth_fiber_start;

HEARTH_STATIC_ASSERT(sizeof(hearth_fiber_start) == 144, "layout");

/* The filter of list() and remove(). A zero or empty field does not restrict. */
typedef struct hearth_fiber_filter {
  uint32_t struct_size;
  uint32_t statuses; /* bits */
  hearth_bytes name;
  int64_t before_ms;  /* created before */
  hearth_bytes after; /* list: a record's id: those that come after it */
  uint32_t limit;     /* list: 1 to 100, 0: 50; remove: 1 to 500, 0: 100 */
  uint32_t dead;      /* 1: only fibers that recovery has given up */
} hearth_fiber_filter;

HEARTH_STATIC_ASSERT(sizeof(hearth_fiber_filter) == 56, "layout");

/* Every function but inspect, list and works_for: INVALID while a savepoint of hearth.sql/1 is
 * open, CLOSING. [instance] */
typedef struct hearth_fibers_v1 {
  /* Accepts a fiber. On disk when it returns.
   *   *fiber    the work that the plugin begins, or continues, before the turn ends; 0 if id or key
   *             named an existing fiber whose work is not the caller's, or its lane is taken
   *   *record   the existing fiber's record; of a new fiber the receipt, with status pending; of a
   *             fiber that was taken up, its record with the checkpoint
   * Errors:
   *   INVALID    a blank id or key, bad JSON; id and key name different records
   *   CONFLICT   policy REJECT; or the existing record differs: in its name or input, or, if it was
   *              found by its id, in its key or because it has none. A settled record is no
   *              conflict with a policy that replaces it
   *   GONE       the parent is over, or no fiber has its id
   *   LIMIT      too many run, too many records, JSON too large
   *   IO
   * After an error nothing has been written. */
  hearth_status (*start)(const hearth_host* host, hearth_agent agent,
                         const hearth_fiber_start* request, hearth_fiber* fiber,
                         hearth_bytes* record);

  /* The fiber that is being offered continues in this instance, under its id, with its checkpoint.
   * On disk when it returns. NOT_FOUND: `id` is not being offered now. LIMIT, IO. */
  hearth_status (*resume)(const hearth_host* host, hearth_agent agent, hearth_bytes id,
                          hearth_fiber* fiber);

  /* Replaces the checkpoint (JSON, whole, not merged). On disk when it returns. Errors: INVALID,
   * LIMIT (larger than the class's max_value), GONE (the fiber has ended), IO. */
  hearth_status (*stash)(const hearth_host* host, hearth_agent agent, hearth_fiber fiber,
                         hearth_bytes json);

  /* The work has ended. status: COMPLETED (body: the result, JSON or empty), ERROR or FINAL_ERROR
   * (body: a text), ABORTED (body: the reason), OUTCOME (body: JSON), or NEEDS_CODE (body: what
   * cannot be read, for the log). With the running turn. *record: the new record (status pending
   * after ERROR with retries left, recovering after NEEDS_CODE).
   * GONE: a cancel has settled it before: nothing is changed. INVALID (no JSON), LIMIT (the result
   * is too large): it still runs. */
  hearth_status (*settle)(const hearth_host* host, hearth_agent agent, hearth_fiber fiber,
                          uint32_t status, hearth_bytes body, hearth_bytes* record);

  /* By id or by key; the other is empty. NOT_FOUND. */
  hearth_status (*inspect)(const hearth_host* host, hearth_agent agent, hearth_bytes id,
                           hearth_bytes key, hearth_bytes* record);

  /* *records: a JSON array, newest first. A page of more than 4 MiB ends before its limit: only an
   * empty page is the last. NOT_FOUND: no record has the id `after`. INVALID. */
  hearth_status (*list)(const hearth_host* host, hearth_agent agent,
                        const hearth_fiber_filter* filter, hearth_bytes* records);

  /* Settles it as aborted, with a reason, whatever its work does; the plugin should then stop the
   * work. On disk with the turn: after it no crash brings the fiber back. By id or by key. The open
   * fibers below it, however deep, are settled with it. *record: its new record; its "inner" names
   * them. NOT_FOUND: no such fiber, or settled already. */
  hearth_status (*cancel)(const hearth_host* host, hearth_agent agent, hearth_bytes id,
                          hearth_bytes key, hearth_bytes reason, hearth_bytes* record);

  /* Settles an interrupted or dead fiber by hand. outcome: JSON as for the recovery event.
   * NOT_FOUND, INVALID. */
  hearth_status (*resolve)(const hearth_host* host, hearth_agent agent, hearth_bytes id,
                           hearth_bytes outcome);

  /* Offers an interrupted or dead fiber again, soon, with its attempts counted from 0. NOT_FOUND.
   */
  hearth_status (*revive)(const hearth_host* host, hearth_agent agent, hearth_bytes id);

  /* Removes settled records, those settled longest ago first. Unless the filter names statuses or
   * the dead ones: completed and aborted ones, and those with an error that are not dead. A record
   * that is not settled is never removed. *removed: how many. */
  hearth_status (*remove)(const hearth_host* host, hearth_agent agent,
                          const hearth_fiber_filter* filter, uint64_t* removed);

  /* *is_first: 1 if the fiber's work has not asked for this mark before, in any of its runs; else
   * 0. The mark is written with the turn, so a frame sent in the same turn is sent at most once
   * over recoveries. A mark is 1 to 256 bytes of UTF-8; a fiber has at most 10,000 marks, which are
   * removed with its record. GONE: the fiber has ended. INVALID, LIMIT. */
  hearth_status (*once)(const hearth_host* host, hearth_agent agent, hearth_fiber fiber,
                        hearth_bytes mark, uint32_t* is_first);

  /* Says which fiber's work runs from now on, until this is called again or the call into the
   * instance returns:
   *   `fiber` is not 0                         this fiber
   *   HEARTH_EVENT_FIBER_RECOVERED in          the fiber that the event `call` offers
   *   progress
   *   HEARTH_EVENT_FIBERS_RECOVERED for one    the fiber that the event `call` names
   *   fiber alone
   *   another event in progress                the durable work that the event `call` delivers: a
   *                                            schedule, an item, a notification, an alarm, a
   *                                            settled fiber; else none
   * A crash of the process meanwhile counts for this fiber alone (Poison). So does a crash in a job
   * (ext/offload.h) that was submitted meanwhile.
   * In each instance an event begins as the work that it delivers, as in the table, and a result
   * as the work that has submitted its operation. In an instance that has used this function, all
   * else begins as no work. In one that has not, it is unknown, and a crash counts for all work
   * that the agent has begun. So call it with 0 and 0 at HEARTH_EVENT_START or _MIGRATE. */
  hearth_status (*works_for)(const hearth_host* host, hearth_agent agent, hearth_fiber fiber,
                             uint64_t call);
} hearth_fibers_v1;

HEARTH_STATIC_ASSERT(sizeof(hearth_fibers_v1) == 96, "layout");

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* HEARTH_EXT_FIBERS_H */
