/*
 * "hearth.call/1": agents call agents.
 *
 *   start(request, token) -> [the turn is durable] -> the call leaves
 *     -> HEARTH_OP_CALL              a part of the answer: a JSON value   (of a streaming method)
 *     -> HEARTH_OP_CALL, FINAL, OK   the end: a JSON value, or empty if the method gives nothing
 *
 * The callee gets a HEARTH_EVENT_CALL, as from a client: the call wakes it, waits in its queue, and
 * is rejected if the queue is full. The callee may live on any thread of the server. Parts come as
 * fast as hearth_host.credit() allows; the first credit is the request's window.
 *
 * A call is in memory only. An eviction of the caller, and hearth_host.cancel(), drop the answer;
 * the callee does not notice. If the callee is evicted, the host repeats the call of a method that
 * the callee exported as idempotent; any other call ends with CLOSING.
 *
 * A failed call ends with a FINAL result: a status below 0, and the text that a client would get:
 *   NOT_FOUND   no such class, no such method, or with NO_CREATE no such agent
 *   BUSY        the class is unavailable, a queue is full, or the caller reads its parts too slowly
 *   TIMEOUT     the time is over
 *   CLOSING     the callee was evicted during the call, or the server stops
 *   LIMIT       a chain of more than HEARTH_CALL_MAX_DEPTH calls that wait for each other
 *   CONFLICT    a deadlock: the callee handles one call at a time (`calls: serial`) and itself
 *               waits for this call, directly or through others
 *   any other   the answer of the callee's code
 * The flag HEARTH_CALL_BEGAN is set if the callee's code may have begun the call. Without it
 * nothing has run, and it is safe to try again.
 *
 * A name with slashes is a path to an agent below others. start() and notify() accept a path to an
 * agent below the caller's own topmost agent, and to the agent that made the call `call`; any other
 * path is FORBIDDEN. The reason: code may take names from clients, and a client must pass the
 * agents above the one it asks for. A call creates an agent only if it is right below the caller;
 * any other agent on a path must exist, as with NO_CREATE.
 *
 * notify() is one way and durable: a row of the caller, written with its turn. After the commit the
 * notification is delivered at least once, also after a crash, and in order for each callee.
 *   - Any answer of the callee's code is a delivery, an error too: the host logs that error
 *     (notify:refused), and does not repeat it. The exception is BUSY, which asks for a retry.
 *   - If the callee's code gave no answer, the host tries again, with growing waits of at most five
 *     minutes: the class is unavailable, the callee cannot start or was evicted, or a timeout.
 *   - After 24 hours without an answer, or fibers.max_crashes (2) crashes of the process by the
 *     callee's code, the host gives it up: it is dead and logged (notify:dead). list()
 *     has it until remove() or the end of the agent.
 * The callee may get a notification twice. caller() gives it the same id each time.
 */
#ifndef HEARTH_EXT_CALL_H
#define HEARTH_EXT_CALL_H

#include <hearth/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HEARTH_EXT_CALL "hearth.call/1"

enum { HEARTH_OP_CALL = 5 };

/* At most so many calls of agents may wait for each other. */
enum { HEARTH_CALL_MAX_DEPTH = 16 };

/* hearth_call_request.flags. Unknown ones: UNSUPPORTED. */
enum {
  HEARTH_CALL_NO_CREATE = 1, /* the agent must exist already: it has stored something, or is in
                                memory. Not for notify() */
  HEARTH_CALL_BELOW = 2,     /* the agent of that class and name right below this one
                                (hearth.subagents/1); it is created if necessary */
  HEARTH_CALL_ABOVE = 4      /* the agent right above this one; class and name are ignored */
};

/* hearth_result.flags of HEARTH_OP_CALL, beside HEARTH_RESULT_FINAL. */
enum {
  HEARTH_CALL_BEGAN = 0x100 /* of a failure: the callee's code may have begun it */
};

typedef struct hearth_call_request {
  uint32_t struct_size;
  uint32_t flags;           /* HEARTH_CALL_* */
  hearth_bytes agent_class; /* as the class is named in the code, or as URLs spell it; no alias */
  hearth_bytes name;        /* as in URLs, not decoded; with HEARTH_CALL_BELOW decoded. Or a path,
                               as caller() gives it: see above */
  hearth_bytes method;
  hearth_bytes arguments; /* JSON array; empty: [] */
  /* The event of the calling agent that the call is made for, or 0. The call goes on with the
   * event's depth, the agents that wait for it, its deadline and its trace. If the event is over,
   * only its trace counts. 0: the trace of the event that the agent handles now. */
  uint64_t call;
  uint64_t timeout_ms; /* until the answer, or its next part; 0: the remaining time of that event,
                          or the server's limits.call_timeout. Not for notify() */
  uint64_t window;     /* the first credit, in bytes; 0: 256 KiB. Not for notify() */
} hearth_call_request;

typedef struct hearth_call_v1 {
  /* Submits a call, as hearth_host.submit() does: results come with HEARTH_OP_CALL and `token`,
   * never before this has returned; *id is for cancel() and credit().
   * Errors: INVALID (the agent's class, name or method is empty or too long, the path is malformed,
   * or the arguments are no JSON array), UNSUPPORTED (a flag), NOT_FOUND (no agent is above this
   * one, or a class on the path does not exist), BUSY (a class on the path is unavailable), LIMIT
   * (too many operations in flight), FORBIDDEN (the path leads out of the caller's tree; in create
   * or MIGRATE), CLOSING. [instance] */
  hearth_status (*start)(const hearth_host* host, hearth_agent agent,
                         const hearth_call_request* request, uint64_t token, uint64_t* id);

  /* Writes a notification with this turn. *id: the id that the callee sees, lent. `id` may be null.
   * Errors: as start(), and LIMIT (100,000 notifications wait), CONFLICT (a transaction of the
   * agent's own is open). [instance] */
  hearth_status (*notify)(const hearth_host* host, hearth_agent agent,
                          const hearth_call_request* request, hearth_bytes* id);

  /* The agent that the event `call`, which is in progress, comes from. *caller, lent:
   *   {"class":"ChatRoom","name":"lobby","notification":"<id>"}
   * The name of a sub-agent is its path; a call may use this path while the event is handled.
   * "notification" is present only if the event is a notification.
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

  /* Removes a notification. A delivery in progress is not stopped.
   * Errors: NOT_FOUND, CONFLICT (a transaction of the agent's own is open). [instance] */
  hearth_status (*remove)(const hearth_host* host, hearth_agent agent, hearth_bytes id);
} hearth_call_v1;

HEARTH_STATIC_ASSERT(sizeof(hearth_call_request) == 96, "grows at its end");
HEARTH_STATIC_ASSERT(offsetof(hearth_call_request, call) == 72, "layout");
HEARTH_STATIC_ASSERT(sizeof(hearth_call_v1) == 40, "layout");

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* HEARTH_EXT_CALL_H */
