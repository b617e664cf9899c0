/*
 * hearth.connections/2: the verified claims of a client's token. Everything else about a connection
 * is in hearth.connections/1.
 */
#ifndef HEARTH_EXT_CONNECTIONS_2_H
#define HEARTH_EXT_CONNECTIONS_2_H

#include <hearth/ext/connections.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HEARTH_EXT_CONNECTIONS_2 "hearth.connections/2"

typedef struct hearth_connections_v2 {
  /* The claims of the token that the client has connected with: a JSON object, verified by the
   * server. They stay with the connection, as its tags do. NOT_FOUND: there are no claims (no token
   * was asked for, or its token has none). GONE. [instance] */
  hearth_status (*claims)(const hearth_host* host, hearth_agent agent, uint64_t connection,
                          hearth_bytes* json);

  /* The claims of a client's event in progress: an HTTP request, a message, or a call, through
   * /objects too. `call` names the event. The claims came with the event, and stay when the client
   * has gone. NOT_FOUND: there are no claims, or it is no client's event. GONE: the event is over,
   * or has timed out. [instance] */
  hearth_status (*request_claims)(const hearth_host* host, hearth_agent agent, uint64_t call,
                                  hearth_bytes* json);
} hearth_connections_v2;

HEARTH_STATIC_ASSERT(sizeof(hearth_connections_v2) == 16, "frozen");

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* HEARTH_EXT_CONNECTIONS_2_H */
