/*
 * Operation HEARTH_OP_SLEEP: a result after some time.
 *
 * The wait is in memory: an eviction ends it without a result. An agent that sleeps inside an event
 * is not idle and is not evicted for idleness.
 */
#ifndef HEARTH_EXT_SLEEP_H
#define HEARTH_EXT_SLEEP_H

#include <hearth/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The request of submit(HEARTH_OP_SLEEP). The result has status OK and an empty body. */
typedef struct hearth_sleep_request {
  uint64_t milliseconds; /* at most 366 days: INVALID beyond */
} hearth_sleep_request;

HEARTH_STATIC_ASSERT(sizeof(hearth_sleep_request) == 8, "layout");

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* HEARTH_EXT_SLEEP_H */
