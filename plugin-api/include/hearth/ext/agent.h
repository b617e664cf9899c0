/*
 * hearth.agent/1: control of the agent's own life.
 */
#ifndef HEARTH_EXT_AGENT_H
#define HEARTH_EXT_AGENT_H

#include <hearth/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HEARTH_EXT_AGENT "hearth.agent/1"

enum { HEARTH_PERSON_MAX = 256 /* bytes */ };

typedef struct hearth_agent_v1 {
  /* Evicts the agent soon after the running call has returned (reason HEARTH_EVICT_ADMIN). Its
   * clients stay connected; the next event makes a new instance from storage. Errors: GONE,
   * CLOSING. [instance] */
  hearth_status (*evict)(const hearth_host* host, hearth_agent agent);

  /* Destroys the agent: its state, its tables, its durable work. When this returns, the end is
   * certain, even if the process ends immediately afterwards.
   *   This agent    gets no event after the running call has returned. It is evicted without grace
   *                 and without HEARTH_EVENT_EVICT, even if it is kept alive or works
   *   Its answers   given before leave first; other events in progress are answered with NOT_FOUND
   *   Its clients   are closed with 4410, without HEARTH_EVENT_CLOSE; the agents clients do not
   *                 reconnect after that code. To let some reconnect, close them before (1012)
   *   New events    requests and clients that arrive meanwhile wait, and meet a new, empty agent of
   *                 the same name
   * A second call does nothing. Errors: GONE, CLOSING, IO (not destroyed). [instance] */
  hearth_status (*destroy)(const hearth_host* host, hearth_agent agent);

  /* The agent waits until a person has done what `what` names; empty: it does not wait any more.
   * `key` tells apart what it waits for at once, up to 16; one without a key is usual, and those
   * that begin with "hearth." are the libraries' own. Each has at most HEARTH_PERSON_MAX bytes.
   * Operators see it in `hearth why` and `hearth stuck`, also when the agent is not in memory. The
   * host does nothing else with it. Written with the running turn. Errors: INVALID, LIMIT, GONE,
   * CLOSING, IO. [instance] */
  hearth_status (*waits_for_person)(const hearth_host* host, hearth_agent agent, hearth_bytes key,
                                    hearth_bytes what);
} hearth_agent_v1;

HEARTH_STATIC_ASSERT(sizeof(hearth_agent_v1) == 24, "layout");

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* HEARTH_EXT_AGENT_H */
