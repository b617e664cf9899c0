/*
 * hearth.fibers/2: durable work, in one family of functions. A fiber is a record in the agent's
 * database: the work (a name and an input), how far it is (a checkpoint), and its outcome.
 *
 *   start -> the plugin works, calling stash after each step -> settle
 *
 * The record is on disk when start returns, each checkpoint when stash returns; the end is written
 * with the turn in which settle is called. While a fiber runs, the agent is kept alive. Two other
 * headers apply here too: ext/managed_fibers.h (statuses, records, HEARTH_EVENT_FIBER_SETTLED,
 * HEARTH_EVENT_FIBERS_RECOVERED) and ext/fibers.h (checkpoints, how attempts are counted). These
 * rules differ:
 *
 * Brief     Without HEARTH_FIBER_KEEP_RECORD a fiber is brief: "brief": true in its record. The
 *           record is removed in the turn that settles it, without HEARTH_EVENT_FIBER_SETTLED, and
 *           its key is free again. If recovery gave the fiber up, it is dead: then the event comes,
 *           and the record is listed and kept for fibers.keep_failed.
 * Parents   A brief fiber with a parent is kept until the parent stashes or is settled. So a parent
 *           that is run again starts the same key again, and finds the value. A fiber with a kept
 *           record that is settled by then loses its key, if the key begins with the parent's id
 *           and a slash.
 * Recovery  A fiber is offered with HEARTH_EVENT_FIBER_RECOVERED if its work does not run in this
 *           instance: it was interrupted, or it has failed and is to begin again. The body has the
 *           members "managed" and "reason" for all fibers. The plugin resumes the fiber inside the
 *           event and works on, or completes the event with an outcome. Completed with nothing, the
 *           fiber is let go: a kept one is "interrupted", a brief one is removed.
 * Turns     A fiber with HEARTH_FIBER_TURN ("turn": true in its record) is dead after
 *           fibers.max_turn_recoveries (5); a checkpoint does not reset the count. The agent's
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
 * Unknown   If the event is refused or completed with NOT_FOUND or UNSUPPORTED, this version of the
 *           code does not know the name, or does not want to decide. The fiber then waits for
 *           another version ("waits_for_code": true in its record). It costs no attempt and keeps
 *           nothing awake. It is listed, and offered again by each instance, and when the class's
 *           version changes, without a time limit.
 * Poison    A run that crashed the process counts: after fibers.max_crashes of them the fiber is
 *           dead. The count starts again when a run has worked for five minutes and then stashes
 *           another checkpoint. works_for says which fiber a run belongs to.
 * Plan      HEARTH_EVENT_FIBERS_RECOVERED comes for a single fiber too. Its answer has one more
 *           member, "skip": ids that are not offered but let go, as by a hook. A crash during this
 *           event counts for no fiber if the event named several. After such a crash, or the crash
 *           of a run, the agent is asked for each fiber alone before it is offered; so the fiber
 *           that crashes becomes known.
 * Earlier   A fiber that hearth.fibers/1 began is offered without "managed"; resume makes it a
 *           brief fiber under its id. A fiber that hearth.managed_fibers/1 began is a kept fiber
 *           with one difference: it waits only after NOT_FOUND; after UNSUPPORTED it is
 *           "interrupted".
 */
#ifndef HEARTH_EXT_FIBERS_2_H
#define HEARTH_EXT_FIBERS_2_H

#include <hearth/abi.h>
#include <hearth/ext/fibers.h>
#include <hearth/ext/managed_fibers.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HEARTH_EXT_FIBERS_2 "hearth.fibers/2"

/* One more policy: a completed record is the answer, any other settled record is replaced. */
enum { HEARTH_FIBER_REPLACE_FAILED = 3 };

/* hearth_fiber_start.flags */
enum {
  HEARTH_FIBER_KEEP_RECORD = 1,
  /* The caller can do the work of this name now. If id or key names a fiber that was interrupted
   * and need not wait, it goes on in this instance, as if it had been offered and resumed. */
  HEARTH_FIBER_TAKE_UP = 2,
  /* A turn: work that a client waits for, and that must not begin again without end. No parent. */
  HEARTH_FIBER_TURN = 4
};

typedef struct hearth_fiber_start {
  uint32_t struct_size;
  uint32_t policy;       /* HEARTH_FIBER_JOIN, ... */
  uint32_t flags;        /* HEARTH_FIBER_KEEP_RECORD, ... */
  uint32_t max_retries;  /* how often the work begins again after a failure; 0: never */
  hearth_bytes name;     /* 1 to 256 bytes of UTF-8 */
  hearth_bytes id;       /* 1 to 256 bytes; empty: the host makes one */
  hearth_bytes key;      /* 1 to 256 bytes; empty: none */
  hearth_bytes parent;   /* the id of the fiber that waits for this one; empty: none */
  hearth_bytes input;    /* JSON: what the work needs to begin anew; empty: null */
  hearth_bytes metadata; /* JSON, for people and lists; empty: null */
  /* 0: 1000; the wait doubles with each failure, plus up to a quarter at random */
  uint64_t retry_base_ms;
  uint64_t retry_max_ms; /* 0: 300000 */
} hearth_fiber_start;

HEARTH_STATIC_ASSERT(sizeof(hearth_fiber_start) == 128, "frozen");

/* Every function but inspect, list and works_for: INVALID while a savepoint of hearth.sql/1 is
 * open, CLOSING. [instance] */
typedef struct hearth_fibers_v2 {
  /* Accepts a fiber.
   *   *fiber    the work that the plugin begins, or continues, before the turn ends; 0 if id or key
   *             named an existing fiber whose work is not the caller's
   *   *record   the existing fiber's record; of a new fiber the receipt, with status pending; of a
   *             fiber that was taken up, its record with the checkpoint
   * Errors: INVALID, CONFLICT, LIMIT, IO, as hearth_managed_fibers_v1.start; after an error nothing
   * has been written. */
  hearth_status (*start)(const hearth_host* host, hearth_agent agent,
                         const hearth_fiber_start* request, hearth_fiber* fiber,
                         hearth_bytes* record);

  /* The fiber that is being offered continues in this instance, under its id, with its checkpoint.
   * On disk when it returns. NOT_FOUND: `id` is not being offered now. LIMIT, IO. */
  hearth_status (*resume)(const hearth_host* host, hearth_agent agent, hearth_bytes id,
                          hearth_fiber* fiber);

  /* As hearth_fibers_v1.stash. INVALID, LIMIT, GONE, IO. */
  hearth_status (*stash)(const hearth_host* host, hearth_agent agent, hearth_fiber fiber,
                         hearth_bytes json);

  /* As hearth_managed_fibers_v1.settle. GONE, INVALID, LIMIT. */
  hearth_status (*settle)(const hearth_host* host, hearth_agent agent, hearth_fiber fiber,
                          uint32_t status, hearth_bytes body, hearth_bytes* record);

  /* By id or by key; the other is empty. NOT_FOUND. */
  hearth_status (*inspect)(const hearth_host* host, hearth_agent agent, hearth_bytes id,
                           hearth_bytes key, hearth_bytes* record);

  /* As hearth_managed_fibers_v1.list. NOT_FOUND, INVALID. */
  hearth_status (*list)(const hearth_host* host, hearth_agent agent,
                        const hearth_fiber_filter* filter, hearth_bytes* records);

  /* Settles it as aborted, with a reason, whatever its work does; the plugin should then stop the
   * work. On disk with the turn: after it no crash brings the fiber back. By id or by key. *record:
   * its new record. NOT_FOUND: no such fiber, or settled already. */
  hearth_status (*cancel)(const hearth_host* host, hearth_agent agent, hearth_bytes id,
                          hearth_bytes key, hearth_bytes reason, hearth_bytes* record);

  /* As hearth_managed_fibers_v1.resolve. NOT_FOUND, INVALID. */
  hearth_status (*resolve)(const hearth_host* host, hearth_agent agent, hearth_bytes id,
                           hearth_bytes outcome);

  /* Offers an interrupted or dead fiber again, soon, with its attempts counted from 0. Also one of
   * hearth.fibers/1. NOT_FOUND. */
  hearth_status (*revive)(const hearth_host* host, hearth_agent agent, hearth_bytes id);

  /* As hearth_managed_fibers_v1.remove. */
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
   *   any other `call`                         no fiber
   * A crash of the process meanwhile counts for this fiber alone (Poison). So does a crash in a job
   * (ext/offload.h) that was submitted meanwhile.
   * In an instance that has used this function, each call into the instance begins as the work of
   * no fiber. In one that has not, the work is unknown, and a crash counts for each fiber that runs
   * in the agent. So call it with 0 and 0 at HEARTH_EVENT_START or _MIGRATE: the following work
   * belongs to no fiber. HEARTH_EVENT_FIBER_RECOVERED and _FIBERS_RECOVERED begin as in the table,
   * in each instance. */
  hearth_status (*works_for)(const hearth_host* host, hearth_agent agent, hearth_fiber fiber,
                             uint64_t call);
} hearth_fibers_v2;

HEARTH_STATIC_ASSERT(sizeof(hearth_fibers_v2) == 96, "frozen");

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* HEARTH_EXT_FIBERS_2_H */
