/*
 * hearth.http/1: the rest of an HTTP request (HEARTH_EVENT_REQUEST) and the head of its response.
 *
 * The body of the response is the parts of emit(), followed by the body of complete(). Without
 * set_status the status is 200. An event completed with an error is answered 500 (NOT_FOUND 404,
 * INVALID 400, FORBIDDEN 403, ...) with {"error":{"code","message"}}. `call` names the event;
 * functions answer GONE once it is completed.
 *
 * A body with HEARTH_REQUEST_UNREAD_BODY is read as an operation:
 *   read_body(...)
 *     -> HEARTH_OP_BODY              a piece of the body          (as often as there are pieces)
 *     -> HEARTH_OP_BODY, FINAL, OK   the end; empty
 *     -> HEARTH_OP_BODY, FINAL, < 0  the rest does not come: GONE (the client has left, or the
 *        request is answered), LIMIT (the body is too long, or the client sends too much), TIMEOUT
 *        (the client sends too slowly while credit is left), INVALID (it is not HTTP)
 * Until read_body() the client's bytes stay in its connection, and so they do while no credit is
 * left. Each piece begins the deadline of the event again. If the event is completed before the
 * end, the connection is closed behind the answer. After LIMIT, TIMEOUT and INVALID the host has
 * answered 413, 429, 408 or 400 itself, unless parts of the answer have left before.
 */
#ifndef HEARTH_EXT_HTTP_H
#define HEARTH_EXT_HTTP_H

#include <hearth/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HEARTH_EXT_HTTP "hearth.http/1"

/* hearth_event.flags of HEARTH_EVENT_REQUEST. */
enum { HEARTH_REQUEST_UNREAD_BODY = 1 };

enum { HEARTH_OP_BODY = 7 };

typedef struct hearth_http_v1 {
  /* The request target as sent: "/agents/counter/a/sub?x=1". [instance] */
  hearth_status (*target)(const hearth_host* host, hearth_agent agent, uint64_t call,
                          hearth_bytes* target);

  /* The value of a header (name in any case). NOT_FOUND. [instance] */
  hearth_status (*header)(const hearth_host* host, hearth_agent agent, uint64_t call,
                          hearth_bytes name, hearth_bytes* value);

  /* The header at `index`, in the order sent; two slices, valid together. NOT_FOUND past the last.
   * [instance] */
  hearth_status (*header_at)(const hearth_host* host, hearth_agent agent, uint64_t call,
                             uint32_t index, hearth_bytes* name, hearth_bytes* value);

  /* 200 to 599; before the first emit() (else FORBIDDEN). [instance] */
  hearth_status (*set_status)(const hearth_host* host, hearth_agent agent, uint64_t call,
                              uint32_t status);

  /* Before the first emit(). INVALID: not a header name or value, or one that the host sets
   * (Connection, Content-Length, Date, Keep-Alive, Proxy-Connection, TE, Trailer,
   * Transfer-Encoding, Upgrade). LIMIT: more than 64 headers. [instance] */
  hearth_status (*add_header)(const hearth_host* host, hearth_agent agent, uint64_t call,
                              hearth_bytes name, hearth_bytes value);

  /* Reads the body of the request, once, as hearth_host.submit() begins an operation: results come
   * with HEARTH_OP_BODY and `token`. `window`: the first credit in bytes; 0: 256 KiB; more through
   * hearth_host.credit(). FORBIDDEN: the body came whole, or is already read. [instance] */
  hearth_status (*read_body)(const hearth_host* host, hearth_agent agent, uint64_t call,
                             uint64_t window, uint64_t token, uint64_t* id);
} hearth_http_v1;

HEARTH_STATIC_ASSERT(sizeof(hearth_http_v1) == 6 * 8, "layout");

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* HEARTH_EXT_HTTP_H */
