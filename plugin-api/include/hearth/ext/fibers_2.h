/*
 * hearth.fibers/2: durable work, in one family of functions. A fiber is a record in the agent's
 * database: which work (a name and an input), how far it is (a checkpoint), and what came of it.
 *
 *   start -> the plugin works, calling stash after each step -> settle
 *
 * The record is on disk when start returns, each checkpoint when stash returns; the end is written
 * with the turn in which settle is called. While a fiber runs the agent is kept alive. What
 * ext/managed_fibers.h says of statuses, records, HEARTH_EVENT_FIBER_SETTLED and
 * HEARTH_EVENT_FIBERS_RECOVERED holds here too, and so does what ext/fibers.h says of checkpoints
 * and of the counting of attempts. What is different:
 *
 * Brief     Without HEARTH_FIBER_KEEP_RECORD the record goes in the turn that settles it, and
 *           nobody is told: there is a row as long as there is work, and its key is free again. One
 *           that is dead (recovery was given up) is told, listed and kept for fibers.keep_failed.
 *           A record has one more member then: "brief": true.
 * Parents   A brief fiber with a parent is kept until the parent stashes or is settled: a parent
 *           that is run again starts the same key again, and finds the value. A kept one that is
 *           settled by then loses its key, if that begins with the parent's id and a slash.
 * Recovery  A fiber whose work does not run in this instance was interrupted, or has failed and is
 *           to begin again. It is offered with HEARTH_EVENT_FIBER_RECOVERED, whose body has the
 *           members "managed" and "reason" for all of them. The plugin resumes it inside the event
 *           and works on, or completes the event with an outcome, or with nothing: then the fiber
 *           is let go (a kept one is "interrupted", a brief one goes).
 * Turns     A fiber with HEARTH_FIBER_TURN is dead after fibers.max_turn_recoveries (5), counted
 *           over its checkpoints. ("turn": true in its record.) The agent's clients that speak the
 *           protocol hear of each recovery:
 *             {"type":"session.status_rescheduled","turn":"...","reason":"recovery 2 of 5"}
 *           and of the end of one that is dead:
 *             {"type":"session.error","turn":"...","error":{"type":"turn_interrupted",
 *              "retry_status":"exhausted","message":"..."}}
 *             {"type":"session.status_idle","turn":"...",
 *              "stop_reason":{"type":"retries_exhausted"}}
 *           A client that connects later hears the last of these of each turn that goes on, and of
 *           each that was given up and whose record says so, unless a later turn has begun; 20 of
 *           both.
 * Unknown   Refused, or completed, with NOT_FOUND or UNSUPPORTED: this version of the code does not
 *           know the name, or does not want to decide.
 *           The fiber waits for another version, costs no attempt and keeps nothing awake. It is
 *           listed ("waits_for_code": true in its record) and offered again by each instance, and
 *           when the class's version changes, for as long as it takes.
 * Poison    A run that ended the process counts: after fibers.max_crashes of them the fiber is
 *           dead. They no longer count once a run has worked for five minutes and then stashes
 *           another checkpoint. works_for says whose run it is.
 * Plan      HEARTH_EVENT_FIBERS_RECOVERED comes for a single fiber too. Its answer has one more
 *           member, "skip": ids that are not to be offered; they are let go as by a hook. One that
 *           ended the process counts for no fiber if it named several. After it, or a run that
 *           did, the agent is asked for each fiber alone, before it is offered: then it is known
 *           which one it is.
 * Earlier   What hearth.fibers/1 began is offered without "managed"; resume makes it a brief fiber
 *           under its id. What hearth.managed_fibers/1 began is a kept fiber in every respect but
 *           one: only NOT_FOUND has it wait, after UNSUPPORTED it is "interrupted".
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

/* One more policy: a settled record that has completed is the answer, any other is replaced. */
enum { HEARTH_FIBER_REPLACE_FAILED = 3 };

/* hearth_fiber_start.flags */
enum {
  HEARTH_FIBER_KEEP_RECORD = 1,
  /* The caller can do the work of this name now: if id or key name a fiber that was interrupted
   * and need not wait, it goes on in this instance, as if it had been offered and resumed. */
  HEARTH_FIBER_TAKE_UP = 2,
  /* A turn: work that somebody waits for, and that must not begin again for ever. No parent. */
  HEARTH_FIBER_TURN = 4
};

typedef struct hearth_fiber_start {
  uint32_t struct_size;
  uint32_t policy;       /* HEARTH_FIBER_JOIN, ... */
  uint32_t flags;        /* HEARTH_FIBER_KEEP_RECORD, ... */
  uint32_t max_retries;  /* how often the work begins again after it has failed; 0: never */
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
  /* Accepts a fiber. *fiber: the work that the plugin begins, or goes on with, before the turn
   * ends; 0 if id or key named a fiber that was there and is not the caller's to do. *record: that
   * fiber's record; of a new one the receipt, with status pending; of one that was taken up with
   * its checkpoint. Errors: INVALID, CONFLICT, LIMIT, IO, as hearth_managed_fibers_v1.start; after
   * an error nothing has been written. */
  hearth_status (*start)(const hearth_host* host, hearth_agent agent,
                         const hearth_fiber_start* request, hearth_fiber* fiber,
                         hearth_bytes* record);

  /* The fiber that is being offered goes on in this instance, under its id, with its checkpoint. On
   * disk when it returns. NOT_FOUND: `id` is not being offered now. LIMIT, IO. */
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
   * as it is now. NOT_FOUND: none such, or settled already. */
  hearth_status (*cancel)(const hearth_host* host, hearth_agent agent, hearth_bytes id,
                          hearth_bytes key, hearth_bytes reason, hearth_bytes* record);

  /* As hearth_managed_fibers_v1.resolve. NOT_FOUND, INVALID. */
  hearth_status (*resolve)(const hearth_host* host, hearth_agent agent, hearth_bytes id,
                           hearth_bytes outcome);

  /* Offers an interrupted or dead one again, soon, its attempts forgotten. Also one of
   * hearth.fibers/1. NOT_FOUND. */
  hearth_status (*revive)(const hearth_host* host, hearth_agent agent, hearth_bytes id);

  /* As hearth_managed_fibers_v1.remove. */
  hearth_status (*remove)(const hearth_host* host, hearth_agent agent,
                          const hearth_fiber_filter* filter, uint64_t* removed);

  /* *is_first: 1 if the fiber's work has not asked for this mark before, in any of its runs; else
   * 0. Written with the turn, so that what is sent in the same turn is sent at most once over
   * recoveries. A mark is 1 to 256 bytes of UTF-8, and a fiber has 10,000 of them; they go with its
   * record. GONE: the fiber has ended. INVALID, LIMIT. */
  hearth_status (*once)(const hearth_host* host, hearth_agent agent, hearth_fiber fiber,
                        hearth_bytes mark, uint32_t* is_first);

  /* Whose work runs from now on, until this is called again or the call into the instance returns:
   * that of `fiber`; if that is 0, that of the event `call`, which is the fiber that it offers if
   * it is HEARTH_EVENT_FIBER_RECOVERED in progress, the one that it names if it is
   * HEARTH_EVENT_FIBERS_RECOVERED for one alone, and else no fiber. If the process ends meanwhile,
   * or in a job (ext/offload.h) that was submitted meanwhile, that counts for this fiber alone
   * (Poison).
   * A call into an instance that has used this function begins as the work of no fiber; of one that
   * has not it is unknown, and then it counts for each fiber that runs in the agent. So tell when
   * HEARTH_EVENT_START or _MIGRATE comes, with 0 and 0, that what follows is no fiber's work.
   * HEARTH_EVENT_FIBER_RECOVERED and _FIBERS_RECOVERED begin as told above in each instance. */
  hearth_status (*works_for)(const hearth_host* host, hearth_agent agent, hearth_fiber fiber,
                             uint64_t call);
} hearth_fibers_v2;

HEARTH_STATIC_ASSERT(sizeof(hearth_fibers_v2) == 96, "frozen");

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* HEARTH_EXT_FIBERS_2_H */
