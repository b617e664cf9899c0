/*
 * hearth.agent/1: what an agent may ask about its own life.
 */
#ifndef HEARTH_EXT_AGENT_H
#define HEARTH_EXT_AGENT_H

#include <hearth/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HEARTH_EXT_AGENT "hearth.agent/1"

typedef struct hearth_agent_v1 {
  /* Asks for eviction, soon, after the running call has returned (reason HEARTH_EVICT_ADMIN). Its clients
   * stay connected; the next event makes it anew from storage. Errors: GONE, CLOSING. [instance] */
  hearth_status (*evict)(const hearth_host *host, hearth_agent agent);
} hearth_agent_v1;

HEARTH_STATIC_ASSERT(sizeof(hearth_agent_v1) == 8, "frozen");

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* HEARTH_EXT_AGENT_H */
