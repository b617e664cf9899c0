/*
 * hearth.clock/1: the time. A test host may set it by hand.
 */
#ifndef HEARTH_EXT_CLOCK_H
#define HEARTH_EXT_CLOCK_H

#include <hearth/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HEARTH_EXT_CLOCK "hearth.clock/1"

typedef struct hearth_clock_v1 {
  /* Milliseconds since 1970-01-01T00:00Z. May jump either way. [any] */
  int64_t (*wall_ms)(const hearth_host* host);

  /* Nanoseconds since some moment; never goes back. [any] */
  uint64_t (*steady_ns)(const hearth_host* host);
} hearth_clock_v1;

HEARTH_STATIC_ASSERT(sizeof(hearth_clock_v1) == 16, "layout");

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* HEARTH_EXT_CLOCK_H */
