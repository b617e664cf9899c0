/*
 * hearth.audit/1: entries of an agent in the audit log of the server, which operators read.
 */
#ifndef HEARTH_EXT_AUDIT_H
#define HEARTH_EXT_AUDIT_H

#include <hearth/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HEARTH_EXT_AUDIT "hearth.audit/1"

enum {
  HEARTH_AUDIT_WHAT_MAX = 64,      /* bytes */
  HEARTH_AUDIT_DETAIL_MAX = 2048,  /* bytes */
  HEARTH_AUDIT_BURST = 100,        /* entries of a class at once ... */
  HEARTH_AUDIT_PER_SECOND = 10     /* ... and more of them each second */
};

typedef struct hearth_audit_v1 {
  /* Adds an entry with the event "AgentAudit" and the actor "agent", about this agent. `what`: 1 to
   * HEARTH_AUDIT_WHAT_MAX letters, digits, '_', '.' and '-'. `detail`: a JSON object, or empty for
   * none. The entry is not part of the turn: it stays if the turn fails. LIMIT: `detail` is too
   * long, or the agents of this class have added too many entries; nothing was added. The next
   * entry of the class has a member "suppressed" beside "what" and "detail": the number of refused
   * entries. [instance] */
  hearth_status (*record)(const hearth_host* host, hearth_agent agent, hearth_bytes what,
                          hearth_bytes detail);
} hearth_audit_v1;

HEARTH_STATIC_ASSERT(sizeof(hearth_audit_v1) == 8, "layout");

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* HEARTH_EXT_AUDIT_H */
