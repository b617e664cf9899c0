/*
 * Operations HEARTH_OP_DRAIN and HEARTH_OP_DRAIN_CLIENT: a result as soon as a client has taken
 * most of what it was sent.
 *
 * DRAIN is for an answer whose parts (emit()) are made faster than the client may read them,
 * DRAIN_CLIENT for frames to a connection. Without them, a client that lags by more than
 * limits.send_queue is disconnected.
 *
 *   emit -> DRAIN -> OK -> emit -> DRAIN -> OK -> ... -> complete
 *
 * The result comes when at most a quarter of limits.send_queue waits for the client, often at once.
 * Its body is empty. GONE, also while the client is being closed: the call is over, or no client
 * reads any more: stop. The wait is in memory: an eviction ends it without a result. A host that
 * does not know an operation answers submit() with UNSUPPORTED.
 */
#ifndef HEARTH_EXT_DRAIN_H
#define HEARTH_EXT_DRAIN_H

#include <hearth/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { HEARTH_OP_DRAIN = 3, HEARTH_OP_DRAIN_CLIENT = 6 };

/* The request of submit(HEARTH_OP_DRAIN).
 * Call 0 means no client: the result comes when everything that this turn sends, its answers too,
 * is on its way, and durable if the class asks for that. */
typedef struct hearth_drain_request {
  uint64_t call; /* a CALL or a REQUEST that is not completed, GONE for others; or 0 */
} hearth_drain_request;

HEARTH_STATIC_ASSERT(sizeof(hearth_drain_request) == 8, "layout");

/* The request of submit(HEARTH_OP_DRAIN_CLIENT). */
typedef struct hearth_drain_client_request {
  uint64_t connection; /* of this agent; GONE for others */
} hearth_drain_client_request;

HEARTH_STATIC_ASSERT(sizeof(hearth_drain_client_request) == 8, "layout");

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* HEARTH_EXT_DRAIN_H */
