/*
 * hearth.operations/1: a ledger of an agent's effects outside, so that no side effect runs twice
 * unnoticed. An operation is a row in the agent's database: which effect (a kind and arguments),
 * its progress, and its outcome.
 *
 *   begin -> RUN -> [the row is durable] -> HEARTH_OP_DRAIN, FINAL, OK -> the plugin acts -> settle
 *         -> COMPLETED  the result of the ledger: nothing is done again
 *         -> JOIN       it runs in this instance: begin again, by its id, once it has ended
 *         -> PROBE      the plugin asks the other system -> settle; if it says no, begin again
 *         -> UNKNOWN    it is unknown whether the operation was executed
 *
 * Identity   With a key: (kind, key). In a fiber without one: (scope, kind, arguments, n).
 *            The scope is the id of the fiber. If another fiber waits for this one, the scope is
 *            that fiber's scope, a slash, and the key that this one has there. So each run of the
 *            work has the same scope.
 *            n counts the operations of equal kind and arguments that the work has completed. A run
 *            that begins with a checkpoint goes on counting from there, and finds the operations
 *            that an interrupted run has begun after it.
 *            Arguments are equal as JSON values: the order of members does not count, and 500 is
 *            500.0 (whole numbers up to 2^53).
 *            The id belongs to one agent: another agent, or the same agent after it was destroyed,
 *            makes another id from the same key. A restored backup makes the same ids.
 * Started    The row is as durable as the class asks before the result of RUN comes.
 * Completed  settle() writes into the running turn: the end of the operation and what the agent
 *            does with the result are one commit.
 * Effects    Each kind has one of five classes. The class decides if a run was cut off, or has
 *            failed without knowing whether it was executed. When the operation is begun again:
 *              READ, IDEMPOTENT  RUN
 *              KEYED             RUN, with the same id as the key for the other system, within the
 *                                horizon; UNKNOWN after it, and if the clock was set back to before
 *                                the first run by more than a tenth of the horizon or 5 minutes
 *              PROBE             PROBE; UNKNOWN if the caller cannot ask
 *              UNSAFE            UNKNOWN, already when the next instance starts
 *            If the kind has another class by then, the stricter one counts (the later in this
 *            list).
 * Given up   The host gives up an operation that is not begun again: it becomes UNKNOWN, or its row
 *            is removed if the effect may be repeated. In a fiber: when the outermost fiber of its
 *            work is over, or dead. Without a fiber: when its horizon (KEYED) or a day has passed.
 *            An operation with a key belongs to the fiber that has begun it last. If it is begun
 *            after all, such as by a fiber that was revived, KEYED within its horizon gives RUN,
 *            and PROBE gives PROBE.
 * Unknown    Stays until it is resolved, or begun after all (Given up). The agent gets
 *            HEARTH_EVENT_OPERATION_UNKNOWN, its clients get a frame, and the log gets a line. A
 *            client that connects later gets the frames of the newest 20. The text for models and
 *            people:
 *              operation <id> may have executed; verify before retrying
 * Request    A request may be sent with the operation's id (hearth_fetch_request.operation). The
 *            ledger then knows that it was dispatched, and the beginning of its answer.
 *            If a run is cut off before its request has left, and no earlier attempt may have
 *            acted, the operation is NOT_EXECUTED. The exception: the agent has sent a request or a
 *            call without an operation after that, since it may belong to the run. What the run
 *            sent before without the id is ignored: send every effect with the id.
 *            With `acts_by_request` the request is all that the operation does. Then one without a
 *            note that its request was dispatched is NOT_EXECUTED, also after a crash.
 *            If the beginning of an answer with status 2xx is stored and `can_resume` is set, the
 *            operation is RUN again whatever its class: the plugin hands over the stored part, and
 *            asks for the rest. Without can_resume, and when the outermost fiber of its work is
 *            over, the stored part is kept, and the class decides. So it does after FAILED and
 *            drop_answer(), and then it forgets the part if the class is KEYED or milder.
 * Bounded    Arguments: 64 KiB of JSON. Result: the class's limits.max_value. An agent has at most
 *            100,000 rows. Settled rows are removed after operations.keep of the class's file (30
 *            days), and earlier if there is no room for more; but not while the fiber that they
 *            belong to may run again.
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

/* Asynchronous; `name` is the kind, `body` the record (see inspect()). OK, NOT_FOUND or UNSUPPORTED
 * end the deliveries. After any other status the next instance gets the event again, ten times at
 * most, or twice if it crashes the process. */
enum { HEARTH_EVENT_OPERATION_UNKNOWN = 18 };

/* Classes of effects, from the mildest to the strictest. */
enum {
  HEARTH_EFFECT_READ = 1,       /* none */
  HEARTH_EFFECT_IDEMPOTENT = 2, /* twice is the same as once */
  HEARTH_EFFECT_KEYED = 3,      /* the other system does it once for each key, for some time */
  HEARTH_EFFECT_PROBE = 4,      /* the other system can be asked whether it was done */
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

/* settle(): the outcome of a run or a probe. */
enum {
  HEARTH_OUTCOME_COMPLETED = 1,    /* body: the result, JSON */
  HEARTH_OUTCOME_NOT_EXECUTED = 2, /* body: why, for people */
  HEARTH_OUTCOME_UNKNOWN = 3,      /* it cannot be known; body: why */
  HEARTH_OUTCOME_CUT_OFF = 4,      /* it did not end; the effect's class decides; body: why */
  /* As CUT_OFF, and the run has refused the answer that it was given: drop_answer(). The answer
   * stays if its request has failed, since then its rest is missing. */
  HEARTH_OUTCOME_FAILED = 5
};

typedef struct hearth_operation_start {
  uint32_t struct_size;
  uint32_t effect;         /* HEARTH_EFFECT_* */
  hearth_fiber fiber;      /* the running fiber of hearth.fibers/1; 0: none */
  uint64_t horizon_ms;     /* KEYED: how long the other system knows a key, 1 at least;
                             more than 100 years count as 100; else 0 */
  uint32_t can_probe;      /* 1: the caller can ask the other system */
  uint32_t can_resume;     /* 1: ... for the rest of an answer (HEARTH_FETCH_RESUME) */
  hearth_bytes kind;       /* 1 to 64 bytes of UTF-8 */
  hearth_bytes arguments;  /* JSON; empty: null */
  hearth_bytes key;        /* at most 256 bytes; empty: none, and then a fiber is needed */
  hearth_bytes id;         /* an id that begin() has given: that operation again; or empty */
  uint64_t cost;           /* in the author's unit, at most 10^15; for the limits of the class */
  hearth_bytes key_header; /* of its request (hearth.fetch/1), for its id; empty: Idempotency-Key */
  uint32_t acts_by_request; /* 1: its request is all that it does (Request, above) */
  uint32_t reserved;        /* 0 */
} hearth_operation_start;

HEARTH_STATIC_ASSERT(sizeof(hearth_operation_start) == 128, "grows at its end");

typedef struct hearth_operation_begun {
  uint32_t decision;   /* HEARTH_OPERATION_* */
  uint32_t attempt;    /* RUN: which, from 1 */
  uint64_t operation;  /* RUN, PROBE: for settle() */
  uint64_t wait;       /* RUN: the operation that gives `token` its result, for cancel() */
  hearth_bytes id;     /* 64 hexadecimal digits, also the key for the other system */
  hearth_bytes result; /* COMPLETED: JSON; empty: it was too large to be kept */
} hearth_operation_begun;

HEARTH_STATIC_ASSERT(sizeof(hearth_operation_begun) == 56, "layout");

/* The filter of list(). A zero or empty field does not restrict. */
typedef struct hearth_operation_filter {
  uint32_t struct_size;
  uint32_t states;   /* bits */
  uint32_t limit;    /* 1 to 100; 0: 50 */
  uint32_t reserved; /* 0 */
  hearth_bytes kind;
  hearth_bytes fiber; /* a fiber's id: only operations of its work */
  hearth_bytes after; /* an operation's id: only operations after it */
} hearth_operation_filter;

HEARTH_STATIC_ASSERT(sizeof(hearth_operation_filter) == 64, "layout");

/* Every function but inspect and list: INVALID while a savepoint of hearth.sql/1 is open or the
 * agent migrates, CLOSING. */
typedef struct hearth_operations_v1 {
  /* Decides the next step, and stores it in *begun, whose texts are valid until the next call.
   * After RUN a result of HEARTH_OP_DRAIN comes for `token`: from then on the plugin may act.
   *   INVALID     a field; neither key nor fiber; or the class does not list the kind
   *               (HEARTH_EXT_OPERATION_KINDS), or lists it with another effect
   *   CONFLICT    the key has other arguments
   *   GONE        the fiber has ended
   *   NOT_FOUND   no operation has `id`
   *   LIMIT       no room, or a daily limit is reached (operations.kinds of the class's file)
   *   UNSUPPORTED
   * [instance] */
  hearth_status (*begin)(const hearth_host* host, hearth_agent agent,
                         const hearth_operation_start* request, uint64_t token,
                         hearth_operation_begun* begun);

  /* A run or a probe has ended; HEARTH_OUTCOME_*. *state: its new state, HEARTH_OPERATION_IS_*; may
   * be null. GONE: it is not running. INVALID: no outcome, or no JSON. LIMIT: the result is too
   * large; the operation is completed, without its result. CONFLICT: it acts by its request, and
   * has asked for none; the operation is UNKNOWN. [instance] */
  hearth_status (*settle)(const hearth_host* host, hearth_agent agent, uint64_t operation,
                          uint32_t outcome, hearth_bytes body, uint32_t* state);

  /* *record: a JSON object with "id", "kind", "effect" ("read", "idempotent", "keyed", "probe",
   * "unsafe"), "state", "key" (or null), "scope" (or null), "args", "result", "cost", "attempts",
   * "started_at", "horizon_at" and "settled_at" (Unix milliseconds, or null), "settled_by" (an
   * actor; null: its own run), "note" (or null), "request" (null: it has sent none through the
   * ledger): {"fingerprint", "dispatched_at", "status" (or null), "request_id" (from the other
   * system's header Request-Id or X-Request-Id; or null), "stored_bytes" (of the answer's body),
   * "whole"}. NOT_FOUND. [instance] */
  hearth_status (*inspect)(const hearth_host* host, hearth_agent agent, hearth_bytes id,
                           hearth_bytes* record);

  /* *records: a JSON array, oldest first. A page of more than 4 MiB ends before its limit: only an
   * empty page is the last. NOT_FOUND: `after`. INVALID. [instance] */
  hearth_status (*list)(const hearth_host* host, hearth_agent agent,
                        const hearth_operation_filter* filter, hearth_bytes* records);

  /* Settles an operation that is unknown or interrupted, after a check outside. outcome: COMPLETED
   * (result: JSON, empty: null) or NOT_EXECUTED (the next begin() runs it). note and actor: for
   * people, 1024 and 256 bytes at most. They stay in the record, and are in the audit log
   * ("operation.resolved", see hearth/ext/audit.h). The actor "administrator" is INVALID: it is
   * reserved for administrators. NOT_FOUND. CONFLICT: it runs, or is settled. INVALID. LIMIT: the
   * result is too large; or no audit entry may be added now, and nothing was resolved.
   * [instance] */
  hearth_status (*resolve)(const hearth_host* host, hearth_agent agent, hearth_bytes id,
                           uint32_t outcome, hearth_bytes result, hearth_bytes note,
                           hearth_bytes actor);

  /* The stored answer to the request of an operation that is not settled. *head: JSON,
   * {"can_resume":true,"whole":false,"head":{...}}, with the head of hearth/ext/fetch.h, or null;
   * *body: the stored bytes of its body. Both are valid until the next call.
   * NOT_FOUND: no operation has `id`, or it has sent no request. [instance] */
  hearth_status (*answer)(const hearth_host* host, hearth_agent agent, hearth_bytes id,
                          hearth_bytes* head, hearth_bytes* body);

  /* *path: a file that belongs to the operation alone, the same in each of its attempts, in a
   * directory of the agent that the host has made. The plugin writes and reads the file; it is
   * removed with the operation's row, and with the agent. Use it for an effect that leaves its
   * result there, such as another program: the next attempt, or a probe, finds it. Valid until the
   * next call. NOT_FOUND: no operation of this id runs. BUSY: the directory cannot be made.
   * [instance] */
  hearth_status (*path)(const hearth_host* host, hearth_agent agent, hearth_bytes id,
                        hearth_bytes* path);

  /* The stored answer is of no use: nothing asks for its rest, and another request is sent instead
   * if the effect's class allows one. NOT_FOUND: no operation of this id runs. [instance] */
  hearth_status (*drop_answer)(const hearth_host* host, hearth_agent agent, hearth_bytes id);

  /* The operation has cost so much, in place of hearth_operation_start.cost, for the limits of the
   * class too: for a cost that only the run shows. With the running turn; a later attempt begins
   * with it. NOT_FOUND: no operation of this id runs. INVALID: above 10^15. [instance] */
  hearth_status (*set_cost)(const hearth_host* host, hearth_agent agent, hearth_bytes id,
                            uint64_t cost);

  /* Describes the span of a running operation for the server's collector of traces: its name in
   * place of the kind (empty: it stays), and `attributes`, a JSON object of texts, numbers and
   * booleans such as {"gen_ai.request.model":"m"}, in place of earlier values. Not kept, and in
   * vain if the server records no span. No secrets and no contents. INVALID: something else, more
   * than 32 attributes, a key over 64 bytes, a text or a name over 256. [instance] */
  hearth_status (*describe)(const hearth_host* host, hearth_agent agent, hearth_bytes id,
                            hearth_bytes name, hearth_bytes attributes);
} hearth_operations_v1;

HEARTH_STATIC_ASSERT(sizeof(hearth_operations_v1) == 80, "layout");

/* ---- what a class says about its kinds ---- */

#define HEARTH_EXT_OPERATION_KINDS "hearth.operation_kinds/1"

enum { HEARTH_OPERATION_KINDS_MAX = 256, HEARTH_OPERATION_ANSWER_MAX = 1024 };

/* The answers are for an engineer who reads the code or a log at night: UTF-8, not empty, at most
 * HEARTH_OPERATION_ANSWER_MAX bytes each. */
typedef struct hearth_operation_kind {
  hearth_bytes name;        /* 1 to 64 bytes of UTF-8 */
  uint32_t effect;          /* HEARTH_EFFECT_* */
  uint32_t reserved;        /* 0 */
  hearth_bytes same;        /* What makes two attempts the same operation? */
  hearth_bytes interrupted; /* The server crashes between the call and its answer: and then? */
  hearth_bytes upstream;    /* What does the other system do if it gets the operation twice? */
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

HEARTH_STATIC_ASSERT(sizeof(hearth_operation_kind) == 88, "layout");
HEARTH_STATIC_ASSERT(sizeof(hearth_operation_kinds_v1) == 16, "layout");

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* HEARTH_EXT_OPERATIONS_H */
