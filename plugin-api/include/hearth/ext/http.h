/*
 * hearth.http/1: the rest of an HTTP request (HEARTH_EVENT_REQUEST) and the head of its response.
 *
 * The body of the response is the parts of emit(), followed by the body of complete(). Without
 * set_status the status is 200. An event completed with an error is answered 500 (NOT_FOUND 404,
 * INVALID 400, FORBIDDEN 403, ...) with {"error":{"code","message"}}. `call` names the event;
 * functions answer GONE once it is completed.
 */
#ifndef HEARTH_EXT_HTTP_H
#define HEARTH_EXT_HTTP_H

#include <hearth/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HEARTH_EXT_HTTP "hearth.http/1"

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
} hearth_http_v1;

HEARTH_STATIC_ASSERT(sizeof(hearth_http_v1) == 5 * 8, "layout");

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* HEARTH_EXT_HTTP_H */
