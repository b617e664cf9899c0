/*
 * hearth.connections/2: who a client has proved to be. All else of a connection is in
 * hearth.connections/1.
 */
#ifndef HEARTH_EXT_CONNECTIONS_2_H
#define HEARTH_EXT_CONNECTIONS_2_H

#include <hearth/ext/connections.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HEARTH_EXT_CONNECTIONS_2 "hearth.connections/2"

typedef struct hearth_connections_v2 {
  /* The claims of the token that the client has connected with: a JSON object, which the server has
   * verified. They stay with the connection, as its tags do. NOT_FOUND: the server knows nothing of
   * the client (no token was asked for, or one without claims). GONE. [instance] */
  hearth_status (*claims)(const hearth_host* host, hearth_agent agent, uint64_t connection,
                          hearth_bytes* json);

  /* The same of a client's event in progress: an HTTP request, a call, through /objects too, or a
   * message; `call` is that of the event. The claims came with it, and stay when its client has
   * gone. NOT_FOUND: as above, or it is no client's event. GONE: it is over, or has timed out.
   * [instance] */
  hearth_status (*request_claims)(const hearth_host* host, hearth_agent agent, uint64_t call,
                                  hearth_bytes* json);
} hearth_connections_v2;

HEARTH_STATIC_ASSERT(sizeof(hearth_connections_v2) == 16, "frozen");

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* HEARTH_EXT_CONNECTIONS_2_H */
