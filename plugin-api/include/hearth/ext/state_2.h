/*
 * hearth.state/2: hearth.state/1, and unset().
 */
#ifndef HEARTH_EXT_STATE_2_H
#define HEARTH_EXT_STATE_2_H

#include <hearth/ext/state.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HEARTH_EXT_STATE_2 "hearth.state/2"

typedef struct hearth_state_v2 {
  /* As in hearth.state/1. */
  hearth_status (*get)(const hearth_host* host, hearth_agent agent, hearth_bytes* json);
  hearth_status (*set)(const hearth_host* host, hearth_agent agent, uint64_t on_behalf,
                       hearth_bytes json);
  hearth_status (*set_default)(const hearth_host* host, hearth_agent agent, hearth_bytes json);

  /* Removes the state: get() then gives the default, or NOT_FOUND. Like set(), it belongs to the
   * running turn and to savepoints. Clients get the default, or a state frame without a state;
   * STATE_CHANGED has the default, or null. Errors: FORBIDDEN, LIMIT, IO, as set(). [instance] */
  hearth_status (*unset)(const hearth_host* host, hearth_agent agent, uint64_t on_behalf);
} hearth_state_v2;

HEARTH_STATIC_ASSERT(sizeof(hearth_state_v2) == 32, "frozen");

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* HEARTH_EXT_STATE_2_H */
