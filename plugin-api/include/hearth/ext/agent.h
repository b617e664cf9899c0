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
  /* Asks for eviction, soon, after the running call has returned (reason HEARTH_EVICT_ADMIN). Its
   * clients stay connected; the next event makes it anew from storage. Errors: GONE, CLOSING.
   * [instance] */
  hearth_status (*evict)(const hearth_host* host, hearth_agent agent);

  /* Destroys the agent: its state, its tables, its durable work. When this returns it is certain,
   * whatever ends the process afterwards. Once the running call has returned, the agent gets no
   * event any more; it is evicted without grace or HEARTH_EVENT_EVICT, also if it is kept alive or
   * works. What it has answered leaves first; other events in progress are answered with NOT_FOUND.
   * Its clients are closed with 4410, after which the agents clients do not come back by
   * themselves; there is no HEARTH_EVENT_CLOSE for them. Close those that should come back (1012)
   * before. Requests and clients that come meanwhile wait, and meet a new, empty agent of the same
   * name. A second call does nothing. Errors: GONE, CLOSING, IO (not destroyed). [instance] */
  hearth_status (*destroy)(const hearth_host* host, hearth_agent agent);
} hearth_agent_v1;

HEARTH_STATIC_ASSERT(sizeof(hearth_agent_v1) == 16, "frozen");

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* HEARTH_EXT_AGENT_H */
