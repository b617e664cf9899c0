/*
 * hearth.random/1: bytes that cannot be predicted; a test host may seed them.
 */
#ifndef HEARTH_EXT_RANDOM_H
#define HEARTH_EXT_RANDOM_H

#include <hearth/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HEARTH_EXT_RANDOM "hearth.random/1"

typedef struct hearth_random_v1 {
  /* Fills `size` bytes at `out`. INVALID beyond 1 MiB. [any] */
  hearth_status (*fill)(const hearth_host* host, void* out, size_t size);
} hearth_random_v1;

HEARTH_STATIC_ASSERT(sizeof(hearth_random_v1) == 8, "layout");

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* HEARTH_EXT_RANDOM_H */
