/*
 * hearth.alarms/1: calls of an agent's own methods at a set time.
 *
 * Clients set the same alarms at /objects/{class}/{id}/alarms. An alarm is written with the running
 * turn. At its time the host wakes the agent and calls the method, as a client without a connection
 * would: at least once. After a failure it is called again: by default the second attempt is one
 * second after the first, and the third two seconds after the second. After the last attempt the
 * alarm is dead, and the audit log says AlarmFailed. A new alarm replaces the waiting alarm of the
 * same method.
 *
 * These are settings of the class, not constants: the number of alarms (alarms.max_alarms) and of
 * attempts (alarms.max_attempts), the first wait (alarms.retry_base), and the size of the arguments
 * (limits.max_value).
 *
 * Nothing is changed while a savepoint of hearth.sql/1 is open (INVALID).
 */
#ifndef HEARTH_EXT_ALARMS_H
#define HEARTH_EXT_ALARMS_H

#include <hearth/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HEARTH_EXT_ALARMS "hearth.alarms/1"

enum {
  /* The default of the setting alarms.max_alarms: alarms of one agent, without the dead ones. The
   * setting is the limit, not this constant. */
  HEARTH_ALARMS_DEFAULT = 100,
  HEARTH_ALARM_METHOD_MAX = 256 /* bytes; the same for every class */
};

typedef struct hearth_alarm_request {
  uint32_t struct_size;
  uint32_t reserved;      /* 0 */
  hearth_bytes method;    /* not one that begins with "__" */
  hearth_bytes arguments; /* a JSON array, at most limits.max_value; empty: none */
  int64_t at_ms;          /* Unix milliseconds; a time that has passed: now */
} hearth_alarm_request;

typedef struct hearth_alarms_v1 {
  /* *record: {"id","method","args","fire_at","state","attempts","last_error","replaced"}, times in
   * Unix milliseconds, `state` "waiting", "running" or "dead". LIMIT: too many wait. [instance] */
  hearth_status (*set)(const hearth_host* host, hearth_agent agent,
                       const hearth_alarm_request* request, hearth_bytes* record);

  /* *records: a JSON array of records without "replaced", the next due first. [instance] */
  hearth_status (*list)(const hearth_host* host, hearth_agent agent, hearth_bytes* records);

  /* A call in progress goes on to its end. NOT_FOUND. [instance] */
  hearth_status (*cancel)(const hearth_host* host, hearth_agent agent, hearth_bytes id);
} hearth_alarms_v1;

HEARTH_STATIC_ASSERT(sizeof(hearth_alarm_request) == 48, "grows at its end");
HEARTH_STATIC_ASSERT(sizeof(hearth_alarms_v1) == 3 * 8, "layout");

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* HEARTH_EXT_ALARMS_H */
