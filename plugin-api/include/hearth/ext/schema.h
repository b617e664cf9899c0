/*
 * "hearth.schema/1": a class numbers what it keeps in an agent's database, and brings older data to
 * its own version.
 *
 * The host stores with each agent the version of the class that wrote its data, and compares before
 * START:
 *
 *   stored           what happens
 *   same             nothing
 *   older, or none   HEARTH_EVENT_MIGRATE, then START
 *   newer            the start is refused: older code never meets data of newer code
 *
 * A new agent has nothing to migrate: it is given the class's version with its first write.
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
 * All that the instance has written, in create too, is one transaction with the new version:
 * completed with OK it is committed at once, also if START fails later. An error, the deadline and
 * an end of the server undo all of it and fail the start; the next event tries again. on_event that
 * returns UNSUPPORTED means that nothing needs to be done if `from` is 0, and is an error
 * otherwise. An event that was accepted and is completed with UNSUPPORTED has failed.
 *
 * Meanwhile durable work (fibers, schedules, queue) cannot be changed: INVALID; do it in START.
 * Frames leave after the commit. Jobs of hearth.offload/1 run at once.
 */
enum { HEARTH_EVENT_MIGRATE = 16 };

/* The plugin's side: hearth_class.get_extension(class, HEARTH_EXT_SCHEMA). Constant data, read when
 * the library is loaded. */
typedef struct hearth_schema_v1 {
  uint32_t struct_size;
  uint32_t version; /* 1 or more; 0 is as if the class had no such extension */
} hearth_schema_v1;

HEARTH_STATIC_ASSERT(sizeof(hearth_schema_v1) == 8, "frozen");

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* HEARTH_EXT_SCHEMA_H */
