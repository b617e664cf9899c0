/*
 * "hearth.methods/1": what a class promises about its methods.
 *
 * An eviction cuts off the calls that are in progress: the caller reads that he should try again.
 * If running a method twice does no harm, the class says so here, and the host tries again for him:
 *
 *   CALL "status" -> the library is replaced -> create, START, CALL "status" once more -> answer
 *
 * - It does so for a call that was accepted, has not been completed, and has emitted no part of its
 *   answer.
 * - The second CALL is like the first: name, arguments, connection. Only deadline_ms is what is
 *   left of it. It comes after START, before what has come meanwhile, in the order of the first
 *   calls; possibly on the code of another version, and possibly again and again.
 * - Which version's list counts: that of the code that was cut off. If the new code has no such
 *   method, its answer is NOT_FOUND as ever.
 * - Nothing is repeated when the server stops, when the agent is destroyed, when it was given up
 *   because it hung, when its storage has failed, and when nobody can read the answer any more.
 * - Nor without end: a call whose time limit is over is answered TIMEOUT. One that was repeated
 *   many times (32 in this host), or for which there is no room among those that wait, is answered
 *   CLOSING, "try again", like a method that is not idempotent.
 *
 * "Idempotent" means that a run that was cut off anywhere, followed by a whole run, comes to the
 * same as one whole run. Methods that only read are. So are those that begin work under a key that
 * they were given (hearth.managed_fibers/1).
 */
#ifndef HEARTH_EXT_METHODS_H
#define HEARTH_EXT_METHODS_H

#include <hearth/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HEARTH_EXT_METHODS "hearth.methods/1"

/* hearth_method.flags. A host ignores those that it does not know. */
enum { HEARTH_METHOD_IDEMPOTENT = 1 };

/* Methods that are not listed, or have no flags, exist all the same: nothing is promised of them.
 */
typedef struct hearth_method {
  hearth_bytes name; /* as in HEARTH_EVENT_CALL; 1 to HEARTH_METHOD_NAME_MAX bytes of UTF-8 */
  uint32_t flags;    /* HEARTH_METHOD_* */
  uint32_t reserved; /* 0 */
} hearth_method;

enum {
  HEARTH_METHOD_NAME_MAX = 256,
  HEARTH_METHODS_MAX = 1024 /* in one table */
};

/* The plugin's side: hearth_class.get_extension(class, HEARTH_EXT_METHODS). Constant data, read
 * when the library is loaded. A table that breaks a limit refuses the library. */
typedef struct hearth_methods_v1 {
  uint32_t struct_size;
  uint32_t count;
  const hearth_method* methods; /* may be null only if count is 0 */
} hearth_methods_v1;

HEARTH_STATIC_ASSERT(sizeof(hearth_method) == 24, "frozen");
HEARTH_STATIC_ASSERT(offsetof(hearth_method, flags) == 16, "frozen");
HEARTH_STATIC_ASSERT(sizeof(hearth_methods_v1) == 16, "frozen");
HEARTH_STATIC_ASSERT(offsetof(hearth_methods_v1, count) == 4, "frozen");
HEARTH_STATIC_ASSERT(offsetof(hearth_methods_v1, methods) == 8, "frozen");

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* HEARTH_EXT_METHODS_H */
