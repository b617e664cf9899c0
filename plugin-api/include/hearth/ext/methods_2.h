/*
 * "hearth.methods/2": hearth.methods/1, and facts for callers about the methods of a class:
 * a description, and JSON schemas of the arguments and of the result.
 *
 * If a class gives both tables, the host reads only this one. A host that does not know this one
 * reads the other.
 *
 * A flag is a promise of the class. For each flag the host does this:
 *
 *   IDEMPOTENT   repeats a call that an eviction cut off, by the rules of ext/methods.h
 *   READ_ONLY    the same, and shows it to callers. The method changes nothing that outlives the
 *                call: neither state nor stored data, nor the world outside. The host does not
 *                check it
 *   STREAMING    shows it to callers. The method may send parts of its answer before the answer
 *   EXCLUSIVE    runs a call of the method alone: it begins when no other call or request of the
 *                agent is in progress, and no other begins before it is over. While it waits, later
 *                calls of clients wait behind it. `calls: serial` of a class file sets this for all
 *                methods. Schedules, queue items, fibers and frames go on beside it
 *
 * The schemas are for callers too. The host does not check calls against them: the class checks its
 * arguments itself, as always.
 */
#ifndef HEARTH_EXT_METHODS_2_H
#define HEARTH_EXT_METHODS_2_H

#include <hearth/ext/methods.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HEARTH_EXT_METHODS_2 "hearth.methods/2"

/* hearth_method_2.flags, besides HEARTH_METHOD_IDEMPOTENT. A host ignores flags that it does not
 * know. */
enum { HEARTH_METHOD_STREAMING = 2, HEARTH_METHOD_READ_ONLY = 4, HEARTH_METHOD_EXCLUSIVE = 8 };

/* Methods that are not listed exist too. If a name is listed twice, the first entry counts. */
typedef struct hearth_method_2 {
  hearth_bytes name; /* as in HEARTH_EVENT_CALL; 1 to HEARTH_METHOD_NAME_MAX bytes of UTF-8 */
  uint32_t flags;    /* HEARTH_METHOD_* */
  uint32_t reserved; /* 0 */

  /* For people and for language models: UTF-8, at most HEARTH_METHOD_DESCRIPTION_MAX bytes; may be
   * empty. */
  hearth_bytes description;

  /* JSON Schema (draft 2020-12) of the array of arguments, with prefixItems, and of the result.
   * JSON text of an object, at most HEARTH_METHOD_SCHEMA_MAX bytes; empty: unknown. The result of a
   * stream is its last value; a method without a result has an empty schema, too. */
  hearth_bytes arguments;
  hearth_bytes result;
} hearth_method_2;

enum { HEARTH_METHOD_DESCRIPTION_MAX = 4096, HEARTH_METHOD_SCHEMA_MAX = 16384 };

/* The plugin's side: hearth_class.get_extension(class, HEARTH_EXT_METHODS_2). Constant data, read
 * when the library is loaded. A table that breaks a limit refuses the library. */
typedef struct hearth_methods_v2 {
  uint32_t struct_size;
  uint32_t count;                 /* at most HEARTH_METHODS_MAX */
  const hearth_method_2* methods; /* may be null only if count is 0 */
} hearth_methods_v2;

HEARTH_STATIC_ASSERT(sizeof(hearth_method_2) == 72, "frozen");
HEARTH_STATIC_ASSERT(offsetof(hearth_method_2, flags) == 16, "frozen");
HEARTH_STATIC_ASSERT(offsetof(hearth_method_2, description) == 24, "frozen");
HEARTH_STATIC_ASSERT(offsetof(hearth_method_2, arguments) == 40, "frozen");
HEARTH_STATIC_ASSERT(offsetof(hearth_method_2, result) == 56, "frozen");
HEARTH_STATIC_ASSERT(sizeof(hearth_methods_v2) == 16, "frozen");
HEARTH_STATIC_ASSERT(offsetof(hearth_methods_v2, count) == 4, "frozen");
HEARTH_STATIC_ASSERT(offsetof(hearth_methods_v2, methods) == 8, "frozen");

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* HEARTH_EXT_METHODS_2_H */
