/*
 * hearth.fibers/1: durable work. A fiber is a row: a piece of work that is in progress, and a
 * checkpoint of how far it is.
 *
 *   start -> the plugin works, calling stash after each step -> finish, or fail
 *
 * The row is on disk when start returns, each checkpoint when stash returns. The row is removed
 * with the turn in which finish or fail is called, so finished work is never offered again. While a
 * fiber runs, the agent is kept alive. If the work of a row does not run in this instance (after a
 * crash, an eviction, a new version of the code), the fiber was interrupted. The host wakes the
 * agent, and offers the fiber after START with HEARTH_EVENT_FIBER_RECOVERED.
 *
 * HEARTH_EVENT_FIBER_RECOVERED: asynchronous. name: the fiber's name; body: JSON
 *   {"id": "...", "snapshot": <the last checkpoint or null>, "created_at": <ms>, "attempt": <1, 2,
 *   ...>}
 *   completed with    what happens
 *   OK                the fiber is recovered: its row is removed, unless a fiber that replaces it
 *                     was started
 *   an error          the row stays and is offered again later, after growing waits; the same if no
 *                     answer came before the class's fibers.recovery_timeout
 *   refused with      on_event returns UNSUPPORTED: the class recovers nothing; the row is removed,
 *   UNSUPPORTED       with a warning in the log
 * A row is offered at most fibers.max_attempts times without a new checkpoint, and
 * fibers.max_recoveries times in all; a replacement inherits both counts. After that the fiber is
 * dead: kept for fibers.keep_failed, listed, and offered again only after retry. While a savepoint
 * of hearth.sql/1 is open the event cannot be completed (INVALID). Once a fiber that replaces it
 * was started the fiber is recovered: the event has no deadline any more, and its outcome does not
 * matter.
 */
/*
 * Tables: SQL may read cf_agents_runs(id, name, snapshot, created_at, ...) in the agent's database.
 */
#ifndef HEARTH_EXT_FIBERS_H
#define HEARTH_EXT_FIBERS_H

#include <hearth/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HEARTH_EXT_FIBERS "hearth.fibers/1"

enum { HEARTH_EVENT_FIBER_RECOVERED = 11 };

/* A fiber that runs in this instance. */
typedef uint64_t hearth_fiber;

typedef struct hearth_fibers_v1 {
  /* Begins a fiber. On disk when it returns. `name`: 1 to 256 bytes of UTF-8; recovery finds the
   * code by it. `replaces`: empty, or the id of an interrupted fiber that this one continues; in
   * the same transaction its row is removed and its checkpoint taken over. *id (36 characters)
   * names the fiber in the table and in logs. Errors: INVALID (also while a savepoint of
   * hearth.sql/1 is open, as with the functions below), NOT_FOUND (no fiber of the id `replaces` is
   * being recovered; a managed one is INVALID: resume it), CLOSING, LIMIT (too many run), IO.
   * [instance] */
  hearth_status (*start)(const hearth_host* host, hearth_agent agent, hearth_bytes name,
                         hearth_bytes replaces, hearth_fiber* fiber, hearth_bytes* id);

  /* Replaces the checkpoint (JSON, whole, not merged). On disk when it returns. A checkpoint with
   * other bytes than the one before is progress: recovery attempts are then counted from 0 again.
   * Errors: INVALID, LIMIT (larger than the class's max_value), GONE (the fiber has ended), IO.
   * [instance] */
  hearth_status (*stash)(const hearth_host* host, hearth_agent agent, hearth_fiber fiber,
                         hearth_bytes json);

  /* The work has succeeded: the row is removed with the running turn. GONE. INVALID: the fiber is
   * managed; call settle. [instance] */
  hearth_status (*finish)(const hearth_host* host, hearth_agent agent, hearth_fiber fiber);

  /* Offers a dead fiber again, soon, with its attempts counted from 0. NOT_FOUND: no dead fiber has
   * this id. [instance] */
  hearth_status (*retry)(const hearth_host* host, hearth_agent agent, hearth_bytes id);

  /* The work has failed: like finish, and reported (log, metrics) with `why`, a text for people.
   * The host does not try again: the plugin decided to end the work. INVALID, GONE. [instance] */
  hearth_status (*fail)(const hearth_host* host, hearth_agent agent, hearth_fiber fiber,
                        hearth_bytes why);

  /* The dead fibers that have no record (hearth.managed_fibers/1 lists the others), oldest first.
   * after: the id that the last page ended with, or empty. limit: 1 to 100; 0: 50. *records: a JSON
   * array of {"id", "name", "snapshot", "created_at", "attempts", "last_error"}. A page of more
   * than 4 MiB ends before its limit: only an empty page is the last. NOT_FOUND: `after` is no
   * longer dead. INVALID. [instance] */
  hearth_status (*list_dead)(const hearth_host* host, hearth_agent agent, hearth_bytes after,
                             uint32_t limit, hearth_bytes* records);
} hearth_fibers_v1;

HEARTH_STATIC_ASSERT(sizeof(hearth_fibers_v1) == 48, "frozen");

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* HEARTH_EXT_FIBERS_H */
