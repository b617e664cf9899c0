/*
 * hearth.managed_fibers/1: fibers with a record that outlives them: the request, the progress, and
 * the outcome.
 *
 * A managed fiber is a fiber (ext/fibers.h: checkpoints, keep-alive, recovery, attempts) plus a
 * record in the agent's database. A caller gets the record at once, looks it up later, and waits
 * for it.
 *
 *   status       what is true                           leaves it by
 *   pending      accepted; its work begins, or begins   the work begins -> running
 *                again after a failure at next_at       cancel -> aborted
 *   running      its work runs in this instance         settle -> completed, error, aborted, or
 *                                                         pending while retries are left
 *                                                       cancel -> aborted
 *                                                       end of the instance -> recovering
 *   recovering   its work was interrupted; it is        resume -> running
 *                offered, or will be at next_at         the hook's outcome -> any settled status
 *                                                       the hook fails too often -> error (dead)
 *                                                       cancel -> aborted
 *   interrupted  settled: it was offered, and no work   resolve -> the outcome
 *                went on                                retry -> recovering
 *   completed    settled, with its result               retention
 *   error        settled, with its error; dead: 1 if    retention; if dead: resolve, retry
 *                recovery was given up
 *   aborted      settled, with the reason               retention
 *
 * A settled status is written in the transaction that ends the work, and only the table's steps
 * change it: finished work is never offered again, and a late end does not undo a cancel. Attempts
 * are counted from the second offer after a crash on, also if the hook itself crashed the process.
 *
 * Recovery comes with HEARTH_EVENT_FIBER_RECOVERED. For managed fibers its body also has:
 *   "managed": <the record>, "reason": "interrupted" | "retry"
 * ("retry": the work failed in this or an earlier instance and is to begin again.) The plugin calls
 * resume() inside the event and works on, or completes the event with an outcome: {"status":
 * "completed" | "error" | "aborted" | "interrupted", "result": <JSON>, "error": "...", "snapshot":
 * <JSON>, "metadata": <JSON>} (only status is required). Completed with nothing, the fiber is
 * interrupted. After an error it is offered again, at most fibers.max_attempts times.
 *
 * HEARTH_EVENT_FIBER_SETTLED: asynchronous. name: the fiber's name; body: the record, in a settled
 * status. It is delivered at least once: until it was completed with OK or UNSUPPORTED, after
 * growing waits, also after a restart. After ten deliveries in a row that crashed the process, or
 * broke the agent's storage, the host stops: the log says fiber:never_told, and the record stays
 * until it is removed.
 * A record that is replaced, retried or removed before is not delivered any more. If a caller waits
 * for such a record, the plugin reads it (inspect) and answers the caller before it calls remove(),
 * or start() with REPLACE.
 *
 * HEARTH_EVENT_FIBERS_RECOVERED: asynchronous. Several fibers, managed or not, were interrupted; it
 * comes before the first is offered. body: JSON
 *   [{"id", "name", "created_at", "attempt"}], oldest first. Completed with {"order": ["id", ...],
 *   "parallel": <n>}: they are offered in that order (those not named after them, oldest first), up
 *   to n at once (1 to 100). Nothing, UNSUPPORTED or an error: oldest first, one at a time.
 *
 * A record is JSON: {"id", "name", "status", "key", "input", "metadata", "snapshot", "result",
 * "error", "dead": <bool>, "created_at",
 *   "started_at", "completed_at", "attempts": <recoveries begun since the last progress>,
 *   "failures": <of the work>, "max_retries", "next_at"}. A missing value is null; times are Unix
 *   milliseconds.
 *
 * Retention: completed and aborted records are removed fibers.keep_completed (24 h) after they were
 * settled, records with an error after fibers.keep_failed (7 days), but never before their
 * HEARTH_EVENT_FIBER_SETTLED. Interrupted and dead ones stay until they are removed.
 */
#ifndef HEARTH_EXT_MANAGED_FIBERS_H
#define HEARTH_EXT_MANAGED_FIBERS_H

#include <hearth/abi.h>
#include <hearth/ext/fibers.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HEARTH_EXT_MANAGED_FIBERS "hearth.managed_fibers/1"

enum { HEARTH_EVENT_FIBER_SETTLED = 14, HEARTH_EVENT_FIBERS_RECOVERED = 15 };

/* Statuses, as numbers where a function takes one. Bits, so that a filter can name several. */
enum {
  HEARTH_FIBER_PENDING = 1,
  HEARTH_FIBER_RUNNING = 2,
  HEARTH_FIBER_RECOVERING = 4,
  HEARTH_FIBER_INTERRUPTED = 8,
  HEARTH_FIBER_COMPLETED = 16,
  HEARTH_FIBER_ERROR = 32,
  HEARTH_FIBER_ABORTED = 64
};

/* hearth_fiber_request.policy: the id or key names a record that is settled. */
enum {
  HEARTH_FIBER_JOIN = 0,   /* that record is the answer */
  HEARTH_FIBER_REJECT = 1, /* CONFLICT */
  HEARTH_FIBER_REPLACE = 2 /* that record is removed, and a new fiber begins */
};

typedef struct hearth_fiber_request {
  uint32_t struct_size;
  uint32_t policy;       /* HEARTH_FIBER_JOIN, ... */
  hearth_bytes name;     /* 1 to 256 bytes of UTF-8 */
  hearth_bytes id;       /* 1 to 256 bytes; empty: the host makes one */
  hearth_bytes key;      /* idempotency key, 1 to 256 bytes; empty: none */
  hearth_bytes input;    /* JSON, kept for recovery; empty: null */
  hearth_bytes metadata; /* JSON, for people and lists; empty: null */
  uint32_t max_retries;  /* how often the work begins again after a failure; 0: never */
  uint32_t reserved;     /* 0 */
  uint64_t
      /* 0: 1000; the wait doubles with each failure, plus up to a quarter at random */
      retry_base_ms;
  uint64_t retry_max_ms; /* 0: 300000 */
} hearth_fiber_request;

HEARTH_STATIC_ASSERT(sizeof(hearth_fiber_request) == 112, "frozen");

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

HEARTH_STATIC_ASSERT(sizeof(hearth_fiber_filter) == 56, "frozen");

typedef struct hearth_managed_fibers_v1 {
  /* Accepts a fiber. On disk when it returns; the plugin begins the work before the turn ends.
   *   *fiber    for hearth.fibers/1 (stash) and settle(); 0 if id or key named an existing record
   *   *record   that existing record; or the receipt, with status pending
   * Errors:
   *   INVALID    a blank id or key, bad JSON; id and key name different records; or a savepoint is
   *              open, as with every function below
   *   CONFLICT   policy REJECT; an unmanaged fiber has this id; or the existing record differs: in
   *              its name or input, or, if it was found by its id, in its key or because it has
   *              none. A settled record is no conflict with the policy REPLACE
   *   LIMIT      too many run, too many records, JSON too large
   *   CLOSING, IO
   * After an error nothing has been written. [instance] */
  hearth_status (*start)(const hearth_host* host, hearth_agent agent,
                         const hearth_fiber_request* request, hearth_fiber* fiber,
                         hearth_bytes* record);

  /* The fiber that is being offered continues in this instance, under its id, with its checkpoint.
   * On disk when it returns.
   * NOT_FOUND: `id` is not being offered now. LIMIT, CLOSING, IO. [instance] */
  hearth_status (*resume)(const hearth_host* host, hearth_agent agent, hearth_bytes id,
                          hearth_fiber* fiber);

  /* The work has ended. status: COMPLETED (body: the result, JSON or empty), ERROR (body: a text)
   * or ABORTED (body: the reason). With the running turn. *record: the new record (status pending
   * after ERROR with retries left).
   * GONE: a cancel has settled it before: nothing is changed. INVALID (no JSON), LIMIT (the result
   * is too large): it still runs. [instance] */
  hearth_status (*settle)(const hearth_host* host, hearth_agent agent, hearth_fiber fiber,
                          uint32_t status, hearth_bytes body, hearth_bytes* record);

  /* By id or by key; the other is empty. NOT_FOUND. [instance] */
  hearth_status (*inspect)(const hearth_host* host, hearth_agent agent, hearth_bytes id,
                           hearth_bytes key, hearth_bytes* record);

  /* *records: a JSON array, newest first. A page of more than 4 MiB ends before its limit: only an
   * empty page is the last.
   * NOT_FOUND: no record has the id `after`. INVALID. [instance] */
  hearth_status (*list)(const hearth_host* host, hearth_agent agent,
                        const hearth_fiber_filter* filter, hearth_bytes* records);

  /* Settles it as aborted, with a reason, whatever its work does; the plugin should then stop the
   * work. On disk with the turn. By id or by key. NOT_FOUND: no such fiber, or settled already.
   * [instance] */
  hearth_status (*cancel)(const hearth_host* host, hearth_agent agent, hearth_bytes id,
                          hearth_bytes key, hearth_bytes reason);

  /* Settles an interrupted or dead fiber by hand. outcome: JSON as for the recovery event.
   * NOT_FOUND, INVALID. [instance] */
  hearth_status (*resolve)(const hearth_host* host, hearth_agent agent, hearth_bytes id,
                           hearth_bytes outcome);

  /* Offers an interrupted or dead fiber again, soon, with its attempts counted from 0. NOT_FOUND.
   * [instance] */
  hearth_status (*retry)(const hearth_host* host, hearth_agent agent, hearth_bytes id);

  /* Removes settled records, those settled longest ago first. Unless the filter names statuses or
   * the dead ones: completed and aborted ones, and those with an error that are not dead. A record
   * that is not settled is never removed. *removed: how many. [instance] */
  hearth_status (*remove)(const hearth_host* host, hearth_agent agent,
                          const hearth_fiber_filter* filter, uint64_t* removed);
} hearth_managed_fibers_v1;

HEARTH_STATIC_ASSERT(sizeof(hearth_managed_fibers_v1) == 72, "frozen");

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* HEARTH_EXT_MANAGED_FIBERS_H */
