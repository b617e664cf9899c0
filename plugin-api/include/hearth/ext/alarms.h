/*
 * hearth.alarms/1: calls of an agent's own methods, each at a time.
 *
 * They are the alarms that clients set at /objects/{class}/{id}/alarms. An alarm is written with
 * the running turn. When its time has come the agent is woken, and the method is called as by a
 * client without a connection: at least once, and after a failure again, as `alarms` of the class's
 * file says (by default three attempts, one and two seconds after a failure). Then the alarm is
 * dead, and the audit log says AlarmFailed. An alarm that is set for a method takes the place of
 * the one that waits for it.
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
  HEARTH_ALARMS_DEFAULT = 100,  /* of one agent, dead ones left out; alarms.max_alarms */
  HEARTH_ALARM_METHOD_MAX = 256 /* bytes */
};

typedef struct hearth_alarm_request {
  uint32_t struct_size;
  uint32_t reserved;      /* 0 */
  hearth_bytes method;    /* not one that begins with "__" */
  hearth_bytes arguments; /* a JSON array, at most limits.max_value of the class; empty: none */
  int64_t at_ms;          /* Unix milliseconds; a time that has passed: now */
} hearth_alarm_request;

typedef struct hearth_alarms_v1 {
  /* *record: {"id","method","args","fire_at","state","attempts","last_error","replaced"}, times in
   * Unix milliseconds, `state` "waiting", "running" or "dead". LIMIT: too many wait. [instance] */
  hearth_status (*set)(const hearth_host* host, hearth_agent agent,
                       const hearth_alarm_request* request, hearth_bytes* record);

  /* *records: a JSON array of records without "replaced", the next due first. [instance] */
  hearth_status (*list)(const hearth_host* host, hearth_agent agent, hearth_bytes* records);

  /* A call that runs goes on to its end. NOT_FOUND. [instance] */
  hearth_status (*cancel)(const hearth_host* host, hearth_agent agent, hearth_bytes id);
} hearth_alarms_v1;

HEARTH_STATIC_ASSERT(sizeof(hearth_alarm_request) == 48, "grows at its end");
HEARTH_STATIC_ASSERT(sizeof(hearth_alarms_v1) == 3 * 8, "frozen");

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* HEARTH_EXT_ALARMS_H */
