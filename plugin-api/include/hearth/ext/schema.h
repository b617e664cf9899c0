/*
 * "hearth.schema/1": a class numbers the format of its data in an agent's database, and brings
 * older data to its own version.
 *
 * The host stores with each agent the version of the class that wrote its data. Before START it
 * compares:
 *
 *   stored           what happens
 *   same             nothing
 *   older, or none   HEARTH_EVENT_MIGRATE, then START
 *   newer            the start is refused: older code never meets data of newer code
 *
 * A new agent has nothing to migrate: it gets the class's version with its first write.
 */
#ifndef HEARTH_EXT_SCHEMA_H
#define HEARTH_EXT_SCHEMA_H

#include <hearth/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HEARTH_EXT_SCHEMA "hearth.schema/1"

/*
 * HEARTH_EVENT_MIGRATE: asynchronous. Comes after create and before START; until it is completed
 * all other events wait. body: JSON {"from": 1, "to": 3}; `from` is 0 if a class without this
 * extension wrote the data.
 *
 * Everything that the instance has written, in create too, is one transaction with the new version.
 *
 *   MIGRATE                       what happens
 *   completed with OK             committed at once, also if START fails later
 *   any error, its deadline, or   all of it is undone, and the start fails; the next event tries
 *   a crash of the server         again
 *   refused with UNSUPPORTED      `from` is 0: the same as OK; any other `from`: an error
 *
 * Meanwhile durable work (fibers, schedules, queue) cannot be changed (INVALID): do it in START.
 * Frames leave after the commit. Jobs of hearth.offload/1 run at once.
 */
enum { HEARTH_EVENT_MIGRATE = 16 };

/* The plugin's side: hearth_class.get_extension(class, HEARTH_EXT_SCHEMA). Constant data, read when
 * the library is loaded. */
typedef struct hearth_schema_v1 {
  uint32_t struct_size;
  uint32_t version; /* 1 or more; 0: as if the class did not have this extension */
} hearth_schema_v1;

HEARTH_STATIC_ASSERT(sizeof(hearth_schema_v1) == 8, "layout");

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* HEARTH_EXT_SCHEMA_H */
