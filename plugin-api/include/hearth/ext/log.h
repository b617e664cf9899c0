/*
 * hearth.log/1: lines in the log of the server, with the agent they come from.
 */
#ifndef HEARTH_EXT_LOG_H
#define HEARTH_EXT_LOG_H

#include <hearth/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HEARTH_EXT_LOG "hearth.log/1"

enum { HEARTH_LOG_DEBUG = 1, HEARTH_LOG_INFO = 2, HEARTH_LOG_WARN = 3, HEARTH_LOG_ERROR = 4 };

/* Added to a level: the text begins with the name of an event, up to its first space. The host also
 * counts it in hearth_agent_events_total{class,event}, whatever the log's level. A name has 1 to 64
 * of a-z 0-9 : _ and comes from the code, never from input. A class has 64 of them; further ones,
 * and texts without a name, count as "other". */
#define HEARTH_LOG_EVENT 0x100

typedef struct hearth_log_v1 {
  /* Writes one line; control characters are escaped, at most 8 KiB are used. If `agent` is 0, the
   * line names only the library. Never fails. [any] */
  void (*write)(const hearth_host* host, hearth_agent agent, int32_t level, hearth_bytes text);
} hearth_log_v1;

HEARTH_STATIC_ASSERT(sizeof(hearth_log_v1) == 8, "layout");

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* HEARTH_EXT_LOG_H */
