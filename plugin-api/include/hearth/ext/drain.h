/*
 * Operation HEARTH_OP_DRAIN: a result as soon as a client has taken most of what it was sent.
 *
 * For whoever makes the parts of an answer (emit()) faster than a client may read them. Without it
 * a client that lags by more than limits.send_queue is disconnected.
 *
 *   emit -> DRAIN -> OK -> emit -> DRAIN -> OK -> ... -> complete
 *
 * The result comes when no more than a quarter of limits.send_queue waits for the client, often at
 * once, and has an empty body. GONE: the call is over, or nobody reads its answer any more: stop.
 * The wait is in memory: an eviction ends it without a result. A host that does not know it answers
 * submit() with UNSUPPORTED.
 */
#ifndef HEARTH_EXT_DRAIN_H
#define HEARTH_EXT_DRAIN_H

#include <hearth/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { HEARTH_OP_DRAIN = 3 };

/* The request of submit(HEARTH_OP_DRAIN).
 * Call 0 is about no client: the result comes when all that this turn sends, its answers too, is
 * durable, if the class asks for that, and on its way. */
typedef struct hearth_drain_request {
  uint64_t call; /* a CALL or a REQUEST that is not completed, GONE for others; or 0 */
} hearth_drain_request;

HEARTH_STATIC_ASSERT(sizeof(hearth_drain_request) == 8, "frozen");

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* HEARTH_EXT_DRAIN_H */
