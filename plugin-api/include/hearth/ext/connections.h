/*
 * hearth.connections/1: the agent's WebSocket clients. Sockets belong to the host: they stay open,
 * with id, tags, flags and attachment, while the agent is evicted, and CONNECT is not sent again.
 *
 * A connection is a number, valid until its CLOSE event has been completed. After that, functions
 * answer GONE.
 */
#ifndef HEARTH_EXT_CONNECTIONS_H
#define HEARTH_EXT_CONNECTIONS_H

#include <hearth/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HEARTH_EXT_CONNECTIONS "hearth.connections/1"

enum { HEARTH_SEND_TEXT = 0, HEARTH_SEND_BINARY = 1 };

/* Flags of a connection. */
enum {
  HEARTH_CONNECTION_READONLY = 1,   /* may not change the state */
  HEARTH_CONNECTION_NO_PROTOCOL = 2 /* gets no identity, state or other frames of the protocol */
};

typedef struct hearth_connections_v1 {
  /* The connection after `after` (0: the first) in the order of arrival, with `tag` if that is not
   * empty. Only open ones. NOT_FOUND: no more. [instance] */
  hearth_status (*next)(const hearth_host* host, hearth_agent agent, uint64_t after,
                        hearth_bytes tag, uint64_t* connection);

  /* The id that the client chose (unique only if clients behave), and the request target.
   * [instance] */
  hearth_status (*id)(const hearth_host* host, hearth_agent agent, uint64_t connection,
                      hearth_bytes* id);
  hearth_status (*target)(const hearth_host* host, hearth_agent agent, uint64_t connection,
                          hearth_bytes* target);

  /* A header of the request that opened it (name in any case); only until CONNECT is completed.
   * NOT_FOUND. [instance] */
  hearth_status (*header)(const hearth_host* host, hearth_agent agent, uint64_t connection,
                          hearth_bytes name, hearth_bytes* value);

  /* Tags: the first is the id; at most 10, each 1 to 256 bytes of UTF-8. add_tag only during
   * CONNECTING (else FORBIDDEN); LIMIT, INVALID. tag: NOT_FOUND past the last. [instance] */
  hearth_status (*add_tag)(const hearth_host* host, hearth_agent agent, uint64_t connection,
                           hearth_bytes tag);
  hearth_status (*tag)(const hearth_host* host, hearth_agent agent, uint64_t connection,
                       uint32_t index, hearth_bytes* tag);

  /* HEARTH_CONNECTION_*. NO_PROTOCOL can be set only during CONNECTING (else FORBIDDEN). [instance]
   */
  hearth_status (*flags)(const hearth_host* host, hearth_agent agent, uint64_t connection,
                         uint32_t* flags);
  hearth_status (*set_flags)(const hearth_host* host, hearth_agent agent, uint64_t connection,
                             uint32_t flags);

  /* Bytes of the plugin's own kept with the socket while the agent is evicted; at most 16 KiB
   * (LIMIT). [instance] */
  hearth_status (*attachment)(const hearth_host* host, hearth_agent agent, uint64_t connection,
                              hearth_bytes* bytes);
  hearth_status (*set_attachment)(const hearth_host* host, hearth_agent agent, uint64_t connection,
                                  hearth_bytes bytes);

  /* Sends one frame; it leaves when the writes before it are durable. Never blocks: a client that
   * reads too slowly is closed by the host. Text must be UTF-8 (INVALID). GONE: the client has
   * left. FORBIDDEN: during CONNECTING, since the handshake comes first. [instance] */
  hearth_status (*send)(const hearth_host* host, hearth_agent agent, uint64_t connection,
                        uint32_t kind, hearth_bytes payload);

  /* Sends one frame to every open connection (with `tag`, if that is not empty), except the
   * `except_count` listed ones. [instance] */
  hearth_status (*broadcast)(const hearth_host* host, hearth_agent agent, uint32_t kind,
                             hearth_bytes payload, hearth_bytes tag, const uint64_t* except,
                             size_t except_count);

  /* Closes after the frames sent before. `code`: 1000, 1001, 1008, 1011 to 1013 or 3000 to 4999;
   * clients do not reconnect after 1008 and 4000 to 4999. `reason`: at most 123 bytes of UTF-8.
   * Errors: INVALID, GONE. [instance] */
  hearth_status (*close)(const hearth_host* host, hearth_agent agent, uint64_t connection,
                         uint32_t code, hearth_bytes reason);

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
} hearth_connections_v1;

HEARTH_STATIC_ASSERT(sizeof(hearth_connections_v1) == 15 * 8, "layout");

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* HEARTH_EXT_CONNECTIONS_H */
