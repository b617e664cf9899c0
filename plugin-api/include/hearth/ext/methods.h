/*
 * "hearth.methods/1": what a class promises about its methods.
 *
 * An eviction cuts off the calls that are in progress, and their callers read that they should try
 * again. If running a method twice does no harm, the class says so here. The host then repeats the
 * call for the caller:
 *
 *   CALL "status" -> the library is replaced -> create, START, CALL "status" once more -> answer
 *
 * - The host repeats a call that was accepted, has not been completed, and has emitted no part of
 *   its answer.
 * - The second CALL has the name, arguments and connection of the first. Its deadline_ms is the
 *   remaining time. It comes after START and before the events that arrived meanwhile, in the order
 *   of the first calls. It may come to another version of the code, and more than once.
 * - The list of the version that was cut off decides. If the new code has no such method, it
 *   answers NOT_FOUND as usual.
 * - Nothing is repeated if the server stops, the agent is destroyed, the agent was given up because
 *   it hung, its storage has failed, or no client can read the answer any more.
 * - A call whose time limit is over is answered TIMEOUT. A call that was repeated many times (32 in
 *   this host), or has no room in the queue of waiting events, is answered CLOSING, "try again",
 *   like a method that is not idempotent.
 *
 * "Idempotent" means: a run that was cut off anywhere, followed by a complete run, has the same
 * effect as one complete run. Methods that only read are idempotent. So are methods that begin work
 * under a key that they were given (hearth.fibers/1).
 *
 * The list has facts for callers too: a description, and JSON schemas of the arguments and of the
 * result. The host does not check calls against the schemas: the class checks its arguments itself,
 * as always.
 *
 * A flag is a promise of the class. For each flag the host does this:
 *
 *   IDEMPOTENT   repeats a call that an eviction cut off
 *   READ_ONLY    the same, and shows it to callers. The method changes nothing that outlives the
 *                call: neither state nor stored data, nor the world outside. The host does not
 *                check it
 *   STREAMING    shows it to callers. The method may send parts of its answer before the answer
 *   EXCLUSIVE    runs a call of the method alone: it begins when no other call or request of the
 *                agent is in progress, and no other begins before it is over. While it waits, later
 *                calls of clients wait behind it. `calls: serial` of a class file sets this for all
 *                methods. Schedules, queue items, fibers and frames go on beside it
 */
#ifndef HEARTH_EXT_METHODS_H
#define HEARTH_EXT_METHODS_H

#include <hearth/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HEARTH_EXT_METHODS "hearth.methods/1"

/* hearth_method.flags. A host ignores flags that it does not know. */
enum {
  HEARTH_METHOD_IDEMPOTENT = 1,
  HEARTH_METHOD_STREAMING = 2,
  HEARTH_METHOD_READ_ONLY = 4,
  HEARTH_METHOD_EXCLUSIVE = 8
};

/* Methods that are not listed, or have no flags, exist too; the class promises nothing for them. If
 * a name is listed twice, the first entry counts. */
typedef struct hearth_method {
  hearth_bytes name; /* as in HEARTH_EVENT_CALL; 1 to HEARTH_METHOD_NAME_MAX bytes of UTF-8 */
  uint32_t flags;    /* HEARTH_METHOD_* */
  uint32_t reserved; /* 0 */

  /* For people and for language models: UTF-8, at most HEARTH_METHOD_DESCRIPTION_MAX bytes; may be
   * empty. */
  hearth_bytes description;

  /* JSON Schema (draft 2020-12) of the array of arguments, with prefixItems, and of the result.
   * JSON text of an object, at most HEARTH_METHOD_SCHEMA_MAX bytes; empty: unknown. The result of a
   * stream is its last value; a method without a result has an empty schema, too. A method that
   * may answer without a value has {"anyOf":[...,{"not":{}}]}: the value is of the first schema, if
   * there is one. */
  hearth_bytes arguments;
  hearth_bytes result;
} hearth_method;

enum {
  HEARTH_METHOD_NAME_MAX = 256,
  HEARTH_METHODS_MAX = 1024, /* in one table */
  HEARTH_METHOD_DESCRIPTION_MAX = 4096,
  HEARTH_METHOD_SCHEMA_MAX = 16384
};

/* The plugin's side: hearth_class.get_extension(class, HEARTH_EXT_METHODS). Constant data, read
 * when the library is loaded. A table that breaks a limit refuses the library. */
typedef struct hearth_methods_v1 {
  uint32_t struct_size;
  uint32_t count;               /* at most HEARTH_METHODS_MAX */
  const hearth_method* methods; /* may be null only if count is 0 */
} hearth_methods_v1;

HEARTH_STATIC_ASSERT(sizeof(hearth_method) == 72, "layout");
HEARTH_STATIC_ASSERT(offsetof(hearth_method, flags) == 16, "layout");
HEARTH_STATIC_ASSERT(offsetof(hearth_method, description) == 24, "layout");
HEARTH_STATIC_ASSERT(offsetof(hearth_method, arguments) == 40, "layout");
HEARTH_STATIC_ASSERT(offsetof(hearth_method, result) == 56, "layout");
HEARTH_STATIC_ASSERT(sizeof(hearth_methods_v1) == 16, "layout");
HEARTH_STATIC_ASSERT(offsetof(hearth_methods_v1, count) == 4, "layout");
HEARTH_STATIC_ASSERT(offsetof(hearth_methods_v1, methods) == 8, "layout");

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* HEARTH_EXT_METHODS_H */
