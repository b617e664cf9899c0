/*
 * Operation HEARTH_OP_DRAIN: a result as soon as a client has taken most of what it was sent.
 *
 * For an answer whose parts (emit()) are made faster than the client may read them. Without DRAIN,
 * a client that lags by more than limits.send_queue is disconnected.
 *
 *   emit -> DRAIN -> OK -> emit -> DRAIN -> OK -> ... -> complete
 *
 * The result comes when at most a quarter of limits.send_queue waits for the client, often at once.
 * Its body is empty. GONE: the call is over, or no client reads its answer any more: stop. The wait
 * is in memory: an eviction ends it without a result. A host that does not know this operation
 * answers submit() with UNSUPPORTED.
 */
#ifndef HEARTH_EXT_DRAIN_H
#define HEARTH_EXT_DRAIN_H

#include <hearth/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { HEARTH_OP_DRAIN = 3 };

/* The request of submit(HEARTH_OP_DRAIN).
 * Call 0 means no client: the result comes when everything that this turn sends, its answers too,
 * is on its way, and durable if the class asks for that. */
typedef struct hearth_drain_request {
  uint64_t call; /* a CALL or a REQUEST that is not completed, GONE for others; or 0 */
} hearth_drain_request;

HEARTH_STATIC_ASSERT(sizeof(hearth_drain_request) == 8, "layout");

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* HEARTH_EXT_DRAIN_H */
