/*
 * hearth.keep_alive/1: an agent that works is not idle.
 *
 * A counted reference, held in memory. While it is above zero the agent is not evicted for
 * idleness, and after a crash of the process a persisted wake brings the agent back. References do
 * not survive the crash: their work ended with the process. They appear neither among schedules nor
 * in tables.
 */
#ifndef HEARTH_EXT_KEEP_ALIVE_H
#define HEARTH_EXT_KEEP_ALIVE_H

#include <hearth/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HEARTH_EXT_KEEP_ALIVE "hearth.keep_alive/1"

typedef struct hearth_keep_alive_v1 {
  /* One more reference. The first one is persisted with the running turn. Errors: CLOSING, LIMIT,
   * IO. [instance] */
  hearth_status (*acquire)(const hearth_host* host, hearth_agent agent);

  /* One less. INVALID if none is held. [instance] */
  hearth_status (*release)(const hearth_host* host, hearth_agent agent);
} hearth_keep_alive_v1;

HEARTH_STATIC_ASSERT(sizeof(hearth_keep_alive_v1) == 16, "layout");

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* HEARTH_EXT_KEEP_ALIVE_H */
