/*
 * hearth.state/1: the agent's state, one JSON value that the host stores and sends to every client.
 */
#ifndef HEARTH_EXT_STATE_H
#define HEARTH_EXT_STATE_H

#include <hearth/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HEARTH_EXT_STATE "hearth.state/1"

typedef struct hearth_state_v1 {
  /* The current state (JSON). NOT_FOUND if there is none. [instance] */
  hearth_status (*get)(const hearth_host* host, hearth_agent agent, hearth_bytes* json);

  /* Replaces the state: stored with the running turn, sent to every client that speaks the
   * protocol. A rollback to a savepoint that was begun before (hearth.sql/1) undoes it, and then no
   * client gets it. `on_behalf`: the connection whose event asks for the change, or 0. This client
   * gets the new state too; only a change by its own state frame is not sent back to it.
   * Errors: INVALID (not JSON), LIMIT (larger than the class's max_value), FORBIDDEN (`on_behalf`
   * is a readonly connection), IO. [instance] */
  hearth_status (*set)(const hearth_host* host, hearth_agent agent, uint64_t on_behalf,
                       hearth_bytes json);

  /* The state to show until one is set. Not stored; call it in create or START. [instance] */
  hearth_status (*set_default)(const hearth_host* host, hearth_agent agent, hearth_bytes json);

  /* Removes the state: get() then gives the default, or NOT_FOUND. Like set(), it belongs to the
   * running turn and to savepoints. Clients get the default, or a state frame without a state;
   * STATE_CHANGED has the default, or null. Errors: FORBIDDEN, LIMIT, IO, as set(). [instance] */
  hearth_status (*unset)(const hearth_host* host, hearth_agent agent, uint64_t on_behalf);
} hearth_state_v1;

HEARTH_STATIC_ASSERT(sizeof(hearth_state_v1) == 32, "layout");

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* HEARTH_EXT_STATE_H */
