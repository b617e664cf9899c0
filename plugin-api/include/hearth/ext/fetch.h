/*
 * "hearth.fetch/1": HTTP requests to other servers.
 *
 *   start(request, token) -> [the turn is durable] -> the request leaves
 *     -> HEARTH_OP_FETCH, HEARTH_FETCH_HEAD  {"status":200,"url":"https://...","headers":[[n,v]]}
 *     -> HEARTH_OP_FETCH                     a piece of the body     (as often as there are pieces)
 *     -> HEARTH_OP_FETCH, FINAL, OK          the end; empty
 *
 * The head also has "until_close":true if the body has no length: then it ends when the other
 * server closes the connection, and a body that is cut off looks like a whole one. Any other body
 * that is cut off is a failure.
 *
 * A request leaves only when the agent's earlier writes are as durable as its class asks. It is in
 * memory only: an eviction, and hearth_host.cancel(), end it. The agent itself must begin it again.
 *
 * The body comes decoded (gzip, deflate) and in pieces, as fast as hearth_host.credit() allows; the
 * first credit is the request's window.
 *
 * An answer with an error status (404, 429, 500) is an answer: HEAD, body, OK. A failed request
 * ends with a FINAL result: a status below 0, a text for people, and flags for
 *   - the phase in which it failed (HEARTH_FETCH_PHASE), and
 *   - HEARTH_FETCH_SENT: something of the request may have reached the other server. Without it
 *     nothing has, so that it is safe to try again.
 * Statuses: FORBIDDEN (the class's egress rules), LIMIT (a limit of egress.limits, or the body is
 * longer than max_bytes), TIMEOUT, BUSY (any other failure: no such name, connection refused, an
 * invalid certificate, cut off).
 *
 * The operator sets where requests may go, and their limits: `egress` of the class's file.
 */
#ifndef HEARTH_EXT_FETCH_H
#define HEARTH_EXT_FETCH_H

#include <hearth/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HEARTH_EXT_FETCH "hearth.fetch/1"

enum { HEARTH_OP_FETCH = 4 };

/* hearth_fetch_request.flags. Unknown ones: UNSUPPORTED. */
enum {
  HEARTH_FETCH_FOLLOW = 1, /* redirects, at most 10; the egress rules apply to each hop */
  HEARTH_FETCH_HTTP2 = 2,  /* HTTP/2 if the other server has it. An answer that is read slowly may
                              cost the server up to 32 MiB of memory */
  HEARTH_FETCH_RESUME = 4  /* asks for the rest of the answer that the ledger has of `operation` */
};

/* hearth_result.flags of HEARTH_OP_FETCH, beside HEARTH_RESULT_FINAL. */
enum {
  HEARTH_FETCH_HEAD = 0x100, /* the result is the head of the answer */
  HEARTH_FETCH_SENT = 0x200, /* of a failure: the other server may have received a part */
  HEARTH_FETCH_OF_DAY = 0x400 /* of LIMIT: what the class has for a day is used up */
};

/* Where a request has failed. */
#define HEARTH_FETCH_PHASE(flags) (((flags) >> 16) & 0xff)
enum {
  HEARTH_FETCH_PHASE_RULES = 1,   /* nothing was tried: the egress rules or limits */
  HEARTH_FETCH_PHASE_RESOLVE = 2, /* the name */
  HEARTH_FETCH_PHASE_CONNECT = 3,
  HEARTH_FETCH_PHASE_TLS = 4,
  HEARTH_FETCH_PHASE_SEND = 5,
  HEARTH_FETCH_PHASE_HEADERS = 6, /* of the answer */
  HEARTH_FETCH_PHASE_BODY = 7     /* of the answer */
};

typedef struct hearth_fetch_request {
  uint32_t struct_size;
  uint32_t flags;      /* HEARTH_FETCH_* */
  hearth_bytes method; /* "GET" if empty */
  hearth_bytes url;    /* http or https, without user and password */
  /* JSON: [["Accept","text/event-stream"], ...]; empty: none. INVALID are the headers that the host
   * sets: Connection, Content-Length, Transfer-Encoding and those that belong to them. */
  hearth_bytes headers;
  hearth_bytes body;
  /* A name under egress.secrets of the class's file: the host adds that header, only for the origin
   * of `url`. The plugin never sees it. Empty: none. */
  hearth_bytes credential;
  uint64_t connect_timeout_ms; /* until the connection, TLS included, is open; 0: 10 s */
  uint64_t idle_timeout_ms;    /* no byte arrives, though there is credit; 0: 60 s */
  uint64_t total_timeout_ms;   /* for the whole request; 0: none */
  uint64_t max_bytes;          /* of the decoded body; 0: 64 MiB */
  uint64_t window;             /* the first credit, in bytes; 0: 256 KiB */
  uint64_t call; /* the event that the request is made for, over or not: its trace goes along; 0:
                    the event that the agent handles now */
  /* The id of a running operation of hearth.operations/1 that this request belongs to; or empty.
   *   Ledger    notes before the request leaves that it was dispatched, and its fingerprint; the
   *             answer's status and request id as soon as they are known; and the first
   *             limits.max_value bytes of the body, piece by piece (hearth_operations_v1.answer)
   *   Header    the host adds the operation's id in the header that begin() has named, unless
   *             `headers` has one of that name
   *   Cut off   if nothing of the request has left when the run is cut off, the operation was not
   *             executed */
  hearth_bytes operation;
  /* With RESUME: keeps so many bytes of the stored body, and adds the body of this answer behind
   * them. If the answer does not fit, nothing is added, and it cannot be resumed again. It fits
   * with status 2xx; if `headers` has a Range such as "bytes=5-", only with 206 and a Content-Range
   * that begins there. */
  uint64_t resume_from;
} hearth_fetch_request;

typedef struct hearth_fetch_v1 {
  /* Submits a request, as hearth_host.submit() does: results come with HEARTH_OP_FETCH and `token`,
   * never before this has returned; *id is for cancel() and credit().
   * Errors: INVALID (URL, method or a header), NOT_FOUND (the class has no such credential), BUSY
   * (the credential's file cannot be used now), UNSUPPORTED (a flag, or a host that makes no
   * requests), LIMIT (too many operations in flight), FORBIDDEN (in create or MIGRATE), CLOSING.
   * With an operation also:
   *   NOT_FOUND   the operation does not run
   *   CONFLICT    it has sent its request, and a second one could be a second effect; a request of
   *               it is in flight (neither FINAL nor cancelled); or there is nothing to resume
   *   INVALID     a probe runs, not the operation; or a savepoint of hearth.sql/1 is open
   * [instance] */
  hearth_status (*start)(const hearth_host* host, hearth_agent agent,
                         const hearth_fetch_request* request, uint64_t token, uint64_t* id);
} hearth_fetch_v1;

HEARTH_STATIC_ASSERT(sizeof(hearth_fetch_request) == 160, "grows at its end");
HEARTH_STATIC_ASSERT(offsetof(hearth_fetch_request, connect_timeout_ms) == 88, "layout");
HEARTH_STATIC_ASSERT(sizeof(hearth_fetch_v1) == 8, "layout");

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* HEARTH_EXT_FETCH_H */
