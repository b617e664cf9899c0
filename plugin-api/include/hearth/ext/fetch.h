/*
 * "hearth.fetch/1": HTTP requests to other servers.
 *
 *   start(request, token) -> [the turn is durable] -> the request leaves
 *     -> HEARTH_OP_FETCH, HEARTH_FETCH_HEAD  {"status":200,"url":"https://...","headers":[[n,v]]}
 *     -> HEARTH_OP_FETCH                     a piece of the body     (as often as there are pieces)
 *     -> HEARTH_OP_FETCH, FINAL, OK          the end; empty
 *
 * No request leaves before what the agent wrote before it is as durable as its class asks. It is in
 * memory only: an eviction, and hearth_host.cancel(), ends it. To begin it again is the agent's
 * affair.
 *
 * The body comes decoded (gzip, deflate) and in pieces, as fast as hearth_host.credit() allows; the
 * first credit is the request's window.
 *
 * An answer with an error status (404, 429, 500) is an answer: HEAD, body, OK. What fails is a
 * FINAL result with a status below 0 and a text for people, and its flags say
 *   - in which phase (HEARTH_FETCH_PHASE), and
 *   - HEARTH_FETCH_SENT: something of the request may have reached the other side. Without it
 *     nothing has, so that it is safe to try again.
 * Statuses: FORBIDDEN (the class's egress rules), LIMIT (a limit of egress.limits, or the body is
 * longer than max_bytes), TIMEOUT, BUSY (all else: no such name, refused, a certificate that is not
 * good, cut off).
 *
 * Where requests may go, and under which limits, the operator says: `egress` of the class's file.
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
  HEARTH_FETCH_FOLLOW = 1, /* redirects, at most 10; each hop is judged by the egress rules */
  HEARTH_FETCH_HTTP2 = 2,  /* HTTP/2 if the other side has it. One that is read slowly may cost the
                              server up to 32 MiB of memory */
  HEARTH_FETCH_RESUME = 4  /* asks for the rest of the answer that the ledger has of `operation` */
};

/* hearth_result.flags of HEARTH_OP_FETCH, beside HEARTH_RESULT_FINAL. */
enum {
  HEARTH_FETCH_HEAD = 0x100, /* the result is the head of the answer */
  HEARTH_FETCH_SENT = 0x200  /* of a failure: the other side may have seen something of it */
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
  /* JSON: [["Accept","text/event-stream"], ...]; empty: none. The host sets Connection,
   * Content-Length, Transfer-Encoding and what belongs to them: INVALID here. */
  hearth_bytes headers;
  hearth_bytes body;
  /* A name under egress.secrets of the class's file: the host adds that header, for the origin of
   * `url` alone. The plugin never sees it. Empty: none. */
  hearth_bytes credential;
  uint64_t connect_timeout_ms; /* until the connection, TLS included, stands; 0: 10 s */
  uint64_t idle_timeout_ms;    /* nothing comes, though there is credit; 0: 60 s */
  uint64_t total_timeout_ms;   /* for all of it; 0: none */
  uint64_t max_bytes;          /* of the decoded body; 0: 64 MiB */
  uint64_t window;             /* the first credit, in bytes; 0: 256 KiB */
  uint64_t call; /* the event that it is made for, over or not, whose trace goes along; 0: that of
                    what the agent handles now */
  /* The id of an operation of hearth.operations/1 that runs, and whose request this is; or empty.
   * The ledger has then, before the request leaves, that it was dispatched and its fingerprint; its
   * answer's status and request id as soon as they are known; and the first limits.max_value of the
   * body, piece by piece (hearth_operations_v1.answer). The host adds the operation's id in the
   * header that begin() has named, if `headers` has none of that name. If nothing of the request
   * has left when the run is cut off, the operation was not executed. */
  hearth_bytes operation;
  /* With RESUME: so many bytes of the stored body stay, and the body of this answer is added behind
   * them. A status other than 2xx, and if `headers` has a Range such as "bytes=5-" anything but a
   * 206 whose Content-Range begins there: nothing is added, and it cannot be resumed again. */
  uint64_t resume_from;
} hearth_fetch_request;

typedef struct hearth_fetch_v1 {
  /* Submits a request, as hearth_host.submit() does: results come with HEARTH_OP_FETCH and `token`,
   * never before this has returned, and *id is for cancel() and credit().
   * Errors: INVALID (URL, method or a header), NOT_FOUND (the class has no such credential), BUSY
   * (the credential's file cannot be used now), UNSUPPORTED (a flag, or a host that makes no
   * requests), LIMIT (too many operations in flight), FORBIDDEN (in create or MIGRATE), CLOSING.
   * With an operation also NOT_FOUND (it does not run), CONFLICT (it has sent its request: a second
   * one could be a second effect; a request of it is in flight: neither FINAL nor cancelled; or
   * there is nothing to resume), INVALID (it is a probe that runs; or a savepoint of hearth.sql/1
   * is open).
   * [instance] */
  hearth_status (*start)(const hearth_host* host, hearth_agent agent,
                         const hearth_fetch_request* request, uint64_t token, uint64_t* id);
} hearth_fetch_v1;

HEARTH_STATIC_ASSERT(sizeof(hearth_fetch_request) == 160, "grows at its end");
HEARTH_STATIC_ASSERT(offsetof(hearth_fetch_request, connect_timeout_ms) == 88, "frozen");
HEARTH_STATIC_ASSERT(sizeof(hearth_fetch_v1) == 8, "frozen");

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* HEARTH_EXT_FETCH_H */
