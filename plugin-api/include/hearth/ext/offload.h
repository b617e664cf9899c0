/*
 * Operation HEARTH_OP_OFFLOAD: work that blocks runs on a thread of the host's pool.
 *
 *   submit(HEARTH_OP_OFFLOAD, {job}) -> run(job, 0) on a pool thread -> on_result(token)
 *
 * The job number is the plugin's own and names memory that belongs to the job, not to the agent:
 * the agent may be destroyed while the job runs. `run` is called exactly once for each accepted
 * job. If the operation was cancelled before the job began, it is called with `cancelled` 1, to
 * free the job. A library is not unloaded while a job runs.
 */
#ifndef HEARTH_EXT_OFFLOAD_H
#define HEARTH_EXT_OFFLOAD_H

#include <hearth/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HEARTH_EXT_OFFLOAD "hearth.offload/1"

/* The request of submit(HEARTH_OP_OFFLOAD). UNSUPPORTED if the class has no "hearth.offload/1";
 * LIMIT if too many jobs wait. The result has an empty body and status OK, or PLUGIN if run
 * returned an error. */
typedef struct hearth_offload_request {
  uint64_t job;
} hearth_offload_request;

/* The plugin's side: hearth_class.get_extension(class, HEARTH_EXT_OFFLOAD). */
typedef struct hearth_offload_v1 {
  /* Does the job, or only frees it if `cancelled` is 1. May block. Host functions tagged [any]
   * work. [any] */
  hearth_status (*run)(uint64_t job, uint32_t cancelled);
} hearth_offload_v1;

HEARTH_STATIC_ASSERT(sizeof(hearth_offload_request) == 8, "layout");
HEARTH_STATIC_ASSERT(sizeof(hearth_offload_v1) == 8, "layout");

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* HEARTH_EXT_OFFLOAD_H */
