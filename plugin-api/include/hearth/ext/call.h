/*
 * "hearth.call/1": agents call agents.
 *
 *   start(request, token) -> [the turn is durable] -> the call leaves
 *     -> HEARTH_OP_CALL              a part of the answer: a JSON value   (of a streaming method)
 *     -> HEARTH_OP_CALL, FINAL, OK   the end: a JSON value, or empty if the method gives nothing
 *
 * The callee gets a HEARTH_EVENT_CALL, as from a client: it is woken for it, the call waits in its
 * queue, and it is refused when too much waits. It may live on any thread of the server. Parts come
 * as fast as hearth_host.credit() allows; the first credit is the request's window.
 *
 * A call is in memory only. An eviction of the caller, and hearth_host.cancel(), drops the answer;
 * the callee is not told. If the callee is evicted, the host repeats a method that it exported as
 * idempotent; any other call ends with CLOSING.
 *
 * What fails is a FINAL result with a status below 0 and the text that a client would get:
 *   NOT_FOUND   no such class, no such method, or with NO_CREATE no such agent
 *   BUSY        the class is away, too much waits, or the caller reads its parts too slowly
 *   TIMEOUT     the time is over
 *   CLOSING     the callee was evicted in its middle, or the server stops
 *   LIMIT       more than HEARTH_CALL_MAX_DEPTH calls wait for each other
 *   CONFLICT    the callee handles one call at a time (`calls: serial`) and waits itself, directly
 *               or through others, for this call: nobody would ever answer
 *   any other   what the callee's code answered
 * Its flags have HEARTH_CALL_BEGAN if the callee's code may have begun it. Without it nothing has
 * run, so that it is safe to try again.
 *
 * A name with slashes is the way to an agent below others. It leads only to agents below the
 * caller's own topmost agent, and to the agent that has made the call `call`: code may take names
 * from clients, and who asks for an agent must come past those above it. Everything else is
 * refused by start() and notify(), with FORBIDDEN. Of agents below others a call makes only those
 * right below the caller; any other must exist, as with NO_CREATE.
 *
 * notify() is one way and durable: a row of the caller, written with its turn. After the commit the
 * notification is delivered at least once, also after a crash, and in order for each callee.
 *   - Any answer of the callee's code is a delivery, an error too: the host logs that error
 *     (notify:refused), and does not repeat it. BUSY alone is no answer: it asks for a retry.
 *   - Whatever the callee's code did not answer is tried again with growing waits of at most five
 *     minutes: the class is away, the callee cannot start or was evicted, the time was over.
 *   - After 24 hours without an answer, or 10 crashes of the server in its middle, the host gives
 *     it up: it is dead, it is logged (notify:dead), and list() has it until remove() or the end of
 *     the agent.
 * The callee may get one twice. caller() gives it the same id each time.
 */
#ifndef HEARTH_EXT_CALL_H
#define HEARTH_EXT_CALL_H

#include <hearth/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HEARTH_EXT_CALL "hearth.call/1"

enum { HEARTH_OP_CALL = 5 };

/* So many calls of agents may wait for each other. */
enum { HEARTH_CALL_MAX_DEPTH = 16 };

/* hearth_call_request.flags. Unknown ones: UNSUPPORTED. */
enum {
  HEARTH_CALL_NO_CREATE = 1, /* the agent must exist already: it has stored something, or is in
                                memory. Not for notify() */
  HEARTH_CALL_BELOW = 2,     /* the agent of that class and name right below this one
                                (hearth.subagents/1), which is made if need be */
  HEARTH_CALL_ABOVE = 4      /* the agent right above this one; class and name count for nothing */
};

/* hearth_result.flags of HEARTH_OP_CALL, beside HEARTH_RESULT_FINAL. */
enum {
  HEARTH_CALL_BEGAN = 0x100 /* of a failure: the callee's code may have begun it */
};

typedef struct hearth_call_request {
  uint32_t struct_size;
  uint32_t flags;           /* HEARTH_CALL_* */
  hearth_bytes agent_class; /* as the class is named in the code, or as URLs spell it; no alias */
  hearth_bytes name;        /* as it stands in URLs; with HEARTH_CALL_BELOW decoded. Or a way, as
                               caller() gives it: see above */
  hearth_bytes method;
  hearth_bytes arguments; /* JSON array; empty: [] */
  /* The event of the calling agent for which it is made: its depth, the agents that wait for it,
   * its deadline and its trace go on. Of an event that is over the trace alone. 0: none; the trace
   * is that of what the agent handles now. */
  uint64_t call;
  uint64_t timeout_ms; /* until the answer, or its next part; 0: what is left of that event's time,
                          or the server's limits.call_timeout. Not for notify() */
  uint64_t window;     /* the first credit, in bytes; 0: 256 KiB. Not for notify() */
} hearth_call_request;

typedef struct hearth_call_v1 {
  /* Submits a call, as hearth_host.submit() does: results come with HEARTH_OP_CALL and `token`,
   * never before this has returned, and *id is for cancel() and credit().
   * Errors: INVALID (the agent's class, name or method is empty or too long, the name is no way, or
   * the arguments are no JSON array), UNSUPPORTED (a flag), NOT_FOUND (nothing is above this agent,
   * or there is no such class on the way), BUSY (a class on the way is away), LIMIT (too many
   * operations in flight), FORBIDDEN (the way leads out of the caller's tree; in create or
   * MIGRATE), CLOSING. [instance] */
  hearth_status (*start)(const hearth_host* host, hearth_agent agent,
                         const hearth_call_request* request, uint64_t token, uint64_t* id);

  /* Writes a notification with this turn. *id: the id that the callee sees, lent. `id` may be null.
   * Errors: as start(), and LIMIT (100,000 of them wait), CONFLICT (a transaction of the agent's
   * own is open). [instance] */
  hearth_status (*notify)(const hearth_host* host, hearth_agent agent,
                          const hearth_call_request* request, hearth_bytes* id);

  /* Which agent the event `call`, which is in progress, comes from. *caller, lent:
   *   {"class":"ChatRoom","name":"lobby","notification":"<id>"}
   * The name of a sub-agent is the way to it; a call may name it so while this event is handled.
   * The last member only if it is a notification.
   * Errors: NOT_FOUND (no agent: a client, an alarm, HTTP, the host; or no such event).
   * [instance] */
  hearth_status (*caller)(const hearth_host* host, hearth_agent agent, uint64_t call,
                          hearth_bytes* caller);

  /* This agent's notifications that are not delivered, the oldest first. *records, lent:
   *   [{"id":"<id>","class":"Counter","name":"a","method":"add","arguments":[5],
   *     "state":"waiting"|"running"|"dead","created_at":<Unix ms>,"attempts":2,
   *     "last_error":"..." or null}, ...]
   * `after`: an id, to go on behind it. `limit`: 1 to 1000; 0: 100.
   * Errors: INVALID, NOT_FOUND (`after`). [instance] */
  hearth_status (*list)(const hearth_host* host, hearth_agent agent, hearth_bytes after,
                        uint32_t limit, hearth_bytes* records);

  /* Takes one out. What is on its way is not stopped.
   * Errors: NOT_FOUND, CONFLICT (a transaction of the agent's own is open). [instance] */
  hearth_status (*remove)(const hearth_host* host, hearth_agent agent, hearth_bytes id);
} hearth_call_v1;

HEARTH_STATIC_ASSERT(sizeof(hearth_call_request) == 96, "grows at its end");
HEARTH_STATIC_ASSERT(offsetof(hearth_call_request, call) == 72, "frozen");
HEARTH_STATIC_ASSERT(sizeof(hearth_call_v1) == 40, "frozen");

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* HEARTH_EXT_CALL_H */
