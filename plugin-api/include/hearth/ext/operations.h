/*
 * hearth.operations/1: a ledger of what an agent does outside, so that no side effect runs twice in
 * silence. An operation is a row in the agent's database: which effect (a kind and arguments), how
 * far it is, and what came of it.
 *
 *   begin -> RUN -> [the row is durable] -> HEARTH_OP_DRAIN, FINAL, OK -> the plugin acts -> settle
 *         -> COMPLETED  the result of the ledger: nothing is done again
 *         -> JOIN       it runs in this instance: begin again, by its id, once it has ended
 *         -> PROBE      the plugin asks the other side -> settle, and begin again if it says no
 *         -> UNKNOWN    nobody can know whether it was executed
 *
 * Identity   With a key: (kind, key). In a fiber without one: (scope, kind, arguments, n).
 *            The scope is the id of the fiber. A fiber that another one waits for has the scope of
 *            that one and, after a slash, the key that it has there. So each run of the work has
 *            the same scope.
 *            n counts the operations of equal kind and arguments that have completed in the work. A
 *            run that begins with a checkpoint goes on counting from there, and finds what an
 *            interrupted run has begun behind it.
 *            Arguments are equal as JSON values: the order of members does not count, and 500 is
 *            500.0 (whole numbers up to 2^53).
 *            The id is one agent's: of the same key another agent makes another id, and so does an
 *            agent that was destroyed and is made anew. A restored backup makes the same ones.
 * Started    The row is as durable as the class asks before the result of RUN comes.
 * Completed  settle() writes into the running turn: the end of the operation and what the agent
 *            makes of it are one commit.
 * Effects    Each kind has one of five classes. What is left of an operation whose run was cut off,
 *            or has failed without knowing whether it was executed, when it is begun again:
 *              READ, IDEMPOTENT  RUN
 *              KEYED             RUN, with the same id as the key for the other side, within the
 *                                horizon; UNKNOWN after it, and if the clock was set back before
 *                                the first run
 *              PROBE             PROBE; UNKNOWN if the caller cannot ask
 *              UNSAFE            UNKNOWN, already when the next instance starts
 *            If the kind has another class by then, the stricter one counts (the later in this
 *            list).
 *            One that nobody begins again becomes UNKNOWN by itself, or goes if it may be
 *            repeated: when the outermost fiber of its work is over, or dead; of no fiber, when its
 *            horizon (KEYED) or a day has passed. Whose key says which one it is belongs to the
 *            fiber that has begun it last. Begun all the same after that, such as by a fiber that
 *            was revived: KEYED within its horizon gives RUN, PROBE gives PROBE, as above.
 * Unknown    Stays until it is resolved, or goes on as just said. The agent gets HEARTH_EVENT_OPERATION_UNKNOWN, its clients
 *            a frame, and so does each that connects before that, for the newest 20; the log a
 *            line. The text for models and people:
 *              operation <id> may have executed; verify before retrying
 * Request    What a request that was sent with the operation's id (hearth_fetch_request.operation)
 *            adds: the ledger knows that it was dispatched, and what came of it. A run whose
 *            request has not left, and which nothing came before, is NOT_EXECUTED when it is cut
 *            off; but not if the agent has sent a request or a call without an operation after
 *            that, for it may be the run's. What the run has sent before without its id is not
 *            looked at: an effect of one is sent with the id. With the beginning of an answer of status 2xx and
 *            `can_resume`, an operation is RUN again whatever its class: the plugin hands over what
 *            is stored, and asks for the rest. Without can_resume, and when the outermost fiber of
 *            its work is over, what is stored is kept, and the class decides.
 * Bounded    Arguments: 64 KiB of JSON. Result: the class's limits.max_value. 100,000 rows of an
 *            agent. Settled rows go when operations.keep of the class's file is over (30 days), and
 *            earlier if there is no room for more; but not while the fiber that they belong to may
 *            run again.
 * SQL        The rows can be read as cf_agents_operations, and not written.
 */
#ifndef HEARTH_EXT_OPERATIONS_H
#define HEARTH_EXT_OPERATIONS_H

#include <hearth/abi.h>
#include <hearth/ext/drain.h>
#include <hearth/ext/fibers.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HEARTH_EXT_OPERATIONS "hearth.operations/1"

/* Asynchronous; `name` is the kind, `body` the record (see inspect()). Completed with OK, NOT_FOUND
 * or UNSUPPORTED the agent has been told; else it is told again by the next instance, ten times at
 * most. */
enum { HEARTH_EVENT_OPERATION_UNKNOWN = 18 };

/* Classes of effects, from the mildest to the strictest. */
enum {
  HEARTH_EFFECT_READ = 1,       /* none */
  HEARTH_EFFECT_IDEMPOTENT = 2, /* twice is the same as once */
  HEARTH_EFFECT_KEYED = 3,      /* the other side does it once for each key, for some time */
  HEARTH_EFFECT_PROBE = 4,      /* the other side can be asked whether it was done */
  HEARTH_EFFECT_UNSAFE = 5      /* none of these */
};

/* hearth_operation_begun.decision */
enum {
  HEARTH_OPERATION_RUN = 1,
  HEARTH_OPERATION_PROBE = 2,
  HEARTH_OPERATION_COMPLETED = 3,
  HEARTH_OPERATION_JOIN = 4,
  HEARTH_OPERATION_UNKNOWN = 5
};

/* States of a record, as bits of a filter; the words stand in the record. */
enum {
  HEARTH_OPERATION_IS_RUNNING = 1,      /* "running": in this instance */
  HEARTH_OPERATION_IS_INTERRUPTED = 2,  /* "interrupted": begun, cut off, and not judged yet */
  HEARTH_OPERATION_IS_COMPLETED = 4,    /* "completed" */
  HEARTH_OPERATION_IS_NOT_EXECUTED = 8, /* "not_executed": certainly not */
  HEARTH_OPERATION_IS_UNKNOWN = 16      /* "unknown" */
};

/* settle(): what has become of a run or a probe. */
enum {
  HEARTH_OUTCOME_COMPLETED = 1,    /* body: the result, JSON */
  HEARTH_OUTCOME_NOT_EXECUTED = 2, /* body: why, for people */
  HEARTH_OUTCOME_UNKNOWN = 3,      /* nobody can know; body: why */
  HEARTH_OUTCOME_CUT_OFF = 4       /* it has failed; the effect's class decides; body: why */
};

typedef struct hearth_operation_start {
  uint32_t struct_size;
  uint32_t effect;        /* HEARTH_EFFECT_* */
  hearth_fiber fiber;     /* the one of hearth.fibers/2 that runs; 0: none */
  uint64_t horizon_ms;    /* KEYED: how long the other side knows a key, 1 at least; else 0 */
  uint32_t can_probe;     /* 1: the caller can ask the other side */
  uint32_t can_resume;    /* 1: ... for the rest of an answer (HEARTH_FETCH_RESUME) */
  hearth_bytes kind;      /* 1 to 64 bytes of UTF-8 */
  hearth_bytes arguments; /* JSON; empty: null */
  hearth_bytes key;       /* at most 256 bytes; empty: none, and then a fiber is needed */
  hearth_bytes id;        /* one that begin() has given: that operation, once more; or empty */
  uint64_t cost;          /* in the author's unit, at most 10^15; for the limits of the class */
  hearth_bytes key_header; /* of its request (hearth.fetch/1), for its id; empty: Idempotency-Key */
} hearth_operation_start;

HEARTH_STATIC_ASSERT(sizeof(hearth_operation_start) == 120, "grows at its end");

typedef struct hearth_operation_begun {
  uint32_t decision;   /* HEARTH_OPERATION_* */
  uint32_t attempt;    /* RUN: which, from 1 */
  uint64_t operation;  /* RUN, PROBE: for settle() */
  uint64_t wait;       /* RUN: the operation that gives `token` its result, for cancel() */
  hearth_bytes id;     /* 64 hexadecimal digits, also the key for the other side */
  hearth_bytes result; /* COMPLETED: JSON; empty: it was too large to be kept */
} hearth_operation_begun;

HEARTH_STATIC_ASSERT(sizeof(hearth_operation_begun) == 56, "frozen");

/* What list() looks for. A zero or empty field does not restrict. */
typedef struct hearth_operation_filter {
  uint32_t struct_size;
  uint32_t states;   /* bits */
  uint32_t limit;    /* 1 to 100; 0: 50 */
  uint32_t reserved; /* 0 */
  hearth_bytes kind;
  hearth_bytes fiber; /* a fiber's id: those of its work */
  hearth_bytes after; /* an operation's id: those that come after it */
} hearth_operation_filter;

HEARTH_STATIC_ASSERT(sizeof(hearth_operation_filter) == 64, "frozen");

/* Every function but inspect and list: INVALID while a savepoint of hearth.sql/1 is open or the
 * agent migrates, CLOSING. */
typedef struct hearth_operations_v1 {
  /* Decides what is to be done now, and *begun says it; its texts are good until the next call.
   * After RUN a result of HEARTH_OP_DRAIN comes for `token`: from then on the plugin may act.
   * INVALID: a field; neither key nor fiber; or the class does not list the kind
   * (HEARTH_EXT_OPERATION_KINDS), or with another effect. CONFLICT: the key has other arguments. GONE: the
   * fiber has ended. NOT_FOUND: no operation has `id`. LIMIT: no room, or a limit of the day is
   * reached (operations.kinds of the class's file). UNSUPPORTED. [instance] */
  hearth_status (*begin)(const hearth_host* host, hearth_agent agent,
                         const hearth_operation_start* request, uint64_t token,
                         hearth_operation_begun* begun);

  /* A run or a probe has ended; HEARTH_OUTCOME_*. *state: HEARTH_OPERATION_IS_*, what it is now;
   * may be null. GONE: it is not running. INVALID: no outcome, or no JSON. LIMIT: the result is too
   * large; the operation is completed, without its result. [instance] */
  hearth_status (*settle)(const hearth_host* host, hearth_agent agent, uint64_t operation,
                          uint32_t outcome, hearth_bytes body, uint32_t* state);

  /* *record: a JSON object with "id", "kind", "effect" ("read", "idempotent", "keyed", "probe",
   * "unsafe"), "state", "key" (or null), "scope" (or null), "args", "result", "cost", "attempts",
   * "started_at", "horizon_at" and "settled_at" (Unix milliseconds, or null), "settled_by" (an
   * actor; null: nobody but its run), "note" (or null), "request" (null: it has sent none through
   * the ledger): {"fingerprint", "dispatched_at", "status" (or null), "request_id" (what the other
   * side calls it in the header Request-Id or X-Request-Id; or null), "stored_bytes" (of the
   * answer's body), "whole"}. NOT_FOUND. [instance] */
  hearth_status (*inspect)(const hearth_host* host, hearth_agent agent, hearth_bytes id,
                           hearth_bytes* record);

  /* *records: a JSON array, oldest first. A page of more than 4 MiB ends before its limit: only an
   * empty page is the last. NOT_FOUND: `after`. INVALID. [instance] */
  hearth_status (*list)(const hearth_host* host, hearth_agent agent,
                        const hearth_operation_filter* filter, hearth_bytes* records);

  /* Somebody has found out what became of one that is unknown or interrupted. outcome: COMPLETED
   * (result: JSON, empty: null) or NOT_EXECUTED: the next begin() runs it. note and actor: for
   * people, 1024 and 256 bytes at most (the actor "administrator" is INVALID: it is said of those
   * who are); they stay in the record, and are in the audit log
   * ("operation.resolved", as hearth/ext/audit.h has it). NOT_FOUND. CONFLICT: it runs, or is
   * settled. INVALID. LIMIT: the result; or no entry may be added now, and nothing was resolved.
   * [instance] */
  hearth_status (*resolve)(const hearth_host* host, hearth_agent agent, hearth_bytes id,
                           uint32_t outcome, hearth_bytes result, hearth_bytes note,
                           hearth_bytes actor);

  /* What has come of the answer to the request of an operation that is not settled. *head: JSON,
   * {"can_resume":true,"whole":false,"head":{...}}, with the head as hearth/ext/fetch.h has it, or
   * null; *body: its bytes, as far as they are stored. Both are good until the next call.
   * NOT_FOUND: no operation has `id`, or it has sent no request. [instance] */
  hearth_status (*answer)(const hearth_host* host, hearth_agent agent, hearth_bytes id,
                          hearth_bytes* head, hearth_bytes* body);

  /* *path: of a file that is the operation's alone, the same in each of its attempts, in a
   * directory of the agent that the host has made. The file is the plugin's to write and to read;
   * it goes with the operation's row, and with the agent. For an effect that leaves its result
   * there, such as another program: the next attempt, or a probe, finds it. Good until the next
   * call. NOT_FOUND: no operation of this id runs. BUSY: the directory cannot be made.
   * [instance] */
  hearth_status (*path)(const hearth_host* host, hearth_agent agent, hearth_bytes id,
                        hearth_bytes* path);
} hearth_operations_v1;

HEARTH_STATIC_ASSERT(sizeof(hearth_operations_v1) == 56, "frozen");

/* ---- what a class says of its kinds ---- */

#define HEARTH_EXT_OPERATION_KINDS "hearth.operation_kinds/1"

enum { HEARTH_OPERATION_KINDS_MAX = 256, HEARTH_OPERATION_ANSWER_MAX = 1024 };

/* The answers are for those who read the code or a log at night: UTF-8, not empty, at most
 * HEARTH_OPERATION_ANSWER_MAX bytes each. */
typedef struct hearth_operation_kind {
  hearth_bytes name;        /* 1 to 64 bytes of UTF-8 */
  uint32_t effect;          /* HEARTH_EFFECT_* */
  uint32_t reserved;        /* 0 */
  hearth_bytes same;        /* What makes two attempts the same operation? */
  hearth_bytes interrupted; /* The server ends between the call and its answer: and then? */
  hearth_bytes upstream;    /* The other side gets the same operation twice: what does it do? */
  hearth_bytes unknown;     /* What does the agent do if the answer is "we do not know"? */
} hearth_operation_kind;

/* The plugin's side: hearth_class.get_extension(class, HEARTH_EXT_OPERATION_KINDS). Constant data,
 * read when the library is loaded. A kind without its answers, or listed twice, refuses the
 * library. */
typedef struct hearth_operation_kinds_v1 {
  uint32_t struct_size;
  uint32_t count;                     /* at most HEARTH_OPERATION_KINDS_MAX */
  const hearth_operation_kind* kinds; /* may be null only if count is 0 */
} hearth_operation_kinds_v1;

HEARTH_STATIC_ASSERT(sizeof(hearth_operation_kind) == 88, "frozen");
HEARTH_STATIC_ASSERT(sizeof(hearth_operation_kinds_v1) == 16, "frozen");

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* HEARTH_EXT_OPERATIONS_H */
