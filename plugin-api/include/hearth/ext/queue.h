/*
 * hearth.queue/1: calls that an agent gives itself, one after the other.
 *
 * An item is a row in the agent's database, written with the running turn. Items are delivered in
 * the order in which they were pushed, one at a time, as HEARTH_EVENT_QUEUE_ITEM. After a restart
 * the host wakes the agent for them. Delivery is at least once: if a crash has interrupted the work
 * of an item, it is delivered again.
 *
 * HEARTH_EVENT_QUEUE_ITEM: asynchronous. name: the callback; body: JSON
 *   {"id": "...", "payload": <JSON>, "created_at": <ms>, "attempt": <1, 2, ...>}
 *
 *   completed with           what happens
 *   OK                       the row is removed with that turn
 *   NOT_FOUND, UNSUPPORTED   the class has no such callback; and
 *   UNREADABLE               it cannot read the payload: the item waits for another version of the
 *                            class, and holds back no item behind it. Each instance gets it once
 *   FINAL                    the item becomes a dead letter at once
 *   any other error          retried by the item's retry options, while the items behind it wait;
 *                            after the last attempt the item becomes a dead letter. The same if
 *                            no answer comes within the class's queue.timeout
 *
 * A dead letter is kept and listed, and does not hold up other items. While a savepoint of
 * hearth.sql/1 is open, nothing is changed and no item is completed (INVALID).
 *
 * A record is JSON: {"id", "callback", "payload", "state": "waiting|running|dead", "created_at",
 * "attempts", "next_at": <ms or null>,
 *   "retry": {"max_attempts", "base_delay_ms", "max_delay_ms"}, "last_error": <text or null>}
 *   attempts: deliveries begun. A delivery that the end of the process has interrupted counts
 *   there, but not as one of max_attempts. If the item's own code crashes the process, it becomes a
 *   dead letter after fibers.max_crashes (2) such deliveries.
 */
#ifndef HEARTH_EXT_QUEUE_H
#define HEARTH_EXT_QUEUE_H

#include <hearth/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HEARTH_EXT_QUEUE "hearth.queue/1"

enum { HEARTH_EVENT_QUEUE_ITEM = 13 };

typedef struct hearth_queue_request {
  uint32_t struct_size;
  uint32_t max_attempts;  /* the first included; 0: 3 */
  hearth_bytes callback;  /* 1 to 256 bytes of UTF-8 */
  hearth_bytes payload;   /* JSON; empty: null */
  uint64_t retry_base_ms; /* 0: 100; waits are random, below min(2^attempt * base, max) */
  uint64_t retry_max_ms;  /* 0: 3000 */
} hearth_queue_request;

HEARTH_STATIC_ASSERT(sizeof(hearth_queue_request) == 56, "layout");

/* The filter of list() and remove_all(). A zero or empty field does not restrict. */
typedef struct hearth_queue_filter {
  uint32_t struct_size;
  uint32_t limit; /* list: 1 to 1000; 0: 100 */
  hearth_bytes callback;
  hearth_bytes state;  /* "waiting", "running", "dead" */
  hearth_bytes member; /* with `value`: the payload is an object with this member ... */
  hearth_bytes value;  /* ... of this value (JSON) */
  hearth_bytes after;  /* list: a record's id: only items after it */
} hearth_queue_filter;

HEARTH_STATIC_ASSERT(sizeof(hearth_queue_filter) == 88, "layout");

typedef struct hearth_queue_v1 {
  /* Appends an item. Errors: INVALID (also while a savepoint of hearth.sql/1 is open, as with the
   * functions below), LIMIT (too many items, payload too large), CLOSING, IO. [instance] */
  hearth_status (*push)(const hearth_host* host, hearth_agent agent,
                        const hearth_queue_request* request, hearth_bytes* record);

  /* NOT_FOUND. [instance] */
  hearth_status (*get)(const hearth_host* host, hearth_agent agent, hearth_bytes id,
                       hearth_bytes* record);

  /* *records: a JSON array, in the order of delivery. A page of more than 4 MiB ends before its
   * limit: only an empty page is the last. NOT_FOUND: no item has the id `after` now. INVALID.
   * [instance] */
  hearth_status (*list)(const hearth_host* host, hearth_agent agent,
                        const hearth_queue_filter* filter, hearth_bytes* records);

  /* The row is removed with this turn. If the item runs now, its work goes on to its end and is not
   * retried. NOT_FOUND. [instance] */
  hearth_status (*remove)(const hearth_host* host, hearth_agent agent, hearth_bytes id);

  /* Removes all items that the filter names (`limit` and `after` do not count), as remove() does.
   * *removed: how many. [instance] */
  hearth_status (*remove_all)(const hearth_host* host, hearth_agent agent,
                              const hearth_queue_filter* filter, uint64_t* removed);

  /* Puts a dead letter at the end of the queue, with its attempts counted from 0. NOT_FOUND: no
   * dead letter has this id. [instance] */
  hearth_status (*retry)(const hearth_host* host, hearth_agent agent, hearth_bytes id);
} hearth_queue_v1;

HEARTH_STATIC_ASSERT(sizeof(hearth_queue_v1) == 48, "layout");

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* HEARTH_EXT_QUEUE_H */
