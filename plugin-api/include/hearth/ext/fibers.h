/*
 * hearth.fibers/1: durable work. A fiber is a row that says that work is under way, and a
 * checkpoint of how far it is.
 *
 *   start -> the plugin works, calling stash after each step -> finish, or fail
 *
 * The row is on disk when start returns, each checkpoint when stash returns; the row goes with the
 * turn in which finish or fail is called, so finished work is never offered again. While a fiber
 * runs the agent is kept alive. A row whose work does not run in this instance (after a crash, an
 * eviction, a new version of the code) was interrupted: once the agent has started, the host offers
 * it with HEARTH_EVENT_FIBER_RECOVERED. Nobody has to touch the agent for that.
 *
 * HEARTH_EVENT_FIBER_RECOVERED: asynchronous. name: the fiber's name; body: JSON
 *   {"id": "...", "snapshot": <the last checkpoint or null>, "created_at": <ms>, "attempt": <1, 2,
 *   ...>}
 * Completed with OK: recovered, the row goes, unless a fiber that replaces it was started. An
 * error, or no answer before the class's fibers.recovery_timeout: the row stays and is offered
 * again later, after growing waits, at most fibers.max_attempts times without a new checkpoint, and
 * fibers.max_recoveries times in all (a replacement inherits both counts); then it is dead: kept
 * for fibers.keep_failed, listed, and offered again only after retry. The event is not completed
 * (INVALID) while a savepoint of hearth.sql/1 is open. Once a fiber that replaces it was started it
 * is recovered: from then on the event has no deadline, and its outcome decides nothing.
 * Refused with UNSUPPORTED (by on_event): the class recovers nothing; the row goes, with a warning
 * in the log.
 */
/*
 * Tables: cf_agents_runs(id, name, snapshot, created_at, ...) in the agent's database may be read
 * with SQL.
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
  /* Begins a fiber. `name`: 1 to 256 bytes of UTF-8, what recovery knows it by. `replaces`: the id
   * of an interrupted fiber that this one continues: its row goes and its checkpoint is taken over
   * in the same transaction; or empty. On disk when it returns. *id (36 characters) names it in the
   * table and in logs. Errors: INVALID (also while a savepoint of hearth.sql/1 is open; so do the
   * functions below), NOT_FOUND (nothing of this id is being recovered to replace; a managed one is
   * INVALID: it is resumed), CLOSING, LIMIT (too many run), IO. [instance] */
  hearth_status (*start)(const hearth_host* host, hearth_agent agent, hearth_bytes name,
                         hearth_bytes replaces, hearth_fiber* fiber, hearth_bytes* id);

  /* Replaces the checkpoint (JSON, whole, not merged). On disk when it returns. It is progress,
   * after which attempts to recover the fiber are counted anew, unless its bytes are those of the
   * checkpoint before. Errors: INVALID, LIMIT (larger than the class's max_value), GONE (the fiber
   * has ended), IO. [instance] */
  hearth_status (*stash)(const hearth_host* host, hearth_agent agent, hearth_fiber fiber,
                         hearth_bytes json);

  /* The work has ended well: the row goes with the running turn. GONE. INVALID: it is managed, and
   * is settled. [instance] */
  hearth_status (*finish)(const hearth_host* host, hearth_agent agent, hearth_fiber fiber);

  /* Offers a dead fiber again, soon, counting its attempts anew. NOT_FOUND: no dead fiber has this
   * id. [instance] */
  hearth_status (*retry)(const hearth_host* host, hearth_agent agent, hearth_bytes id);

  /* The work has failed: like finish, and reported (log, metrics) with `why`, a text for people.
   * Nobody tries again: the end of the work is its own decision. INVALID, GONE. [instance] */
  hearth_status (*fail)(const hearth_host* host, hearth_agent agent, hearth_fiber fiber,
                        hearth_bytes why);

  /* The dead fibers that have no record (hearth.managed_fibers/1 lists the others), oldest first.
   * after: the id that the last page ended with, or empty. limit: 1 to 100; 0: 50. *records: a JSON
   * array of {"id", "name", "snapshot", "created_at", "attempts", "last_error"}. A page of more
   * than 4 MiB ends before its limit: only an empty page is the last. NOT_FOUND: `after` is not
   * dead any more. INVALID. [instance] */
  hearth_status (*list_dead)(const hearth_host* host, hearth_agent agent, hearth_bytes after,
                             uint32_t limit, hearth_bytes* records);
} hearth_fibers_v1;

HEARTH_STATIC_ASSERT(sizeof(hearth_fibers_v1) == 48, "frozen");

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* HEARTH_EXT_FIBERS_H */
