/*
 * "hearth.subagents/1": agents below an agent.
 *
 * Any agent may have agents below it, of any class, each under a class and a name of its own. They
 * have their own database, state, clients and durable work, like all agents, and live on the thread
 * of the agent above. A sub-agent is created by the first event that reaches it: a client at
 *
 *   /agents/inbox/user-123/sub/chat/monday[/sub/{class}/{name} ...]
 *
 * or a call (hearth.call/1) from above. Its code gets only its own name ("monday"), decoded. At
 * most HEARTH_SUBAGENT_DEPTH agents stand above an agent.
 *
 * When an agent is destroyed, all agents below it are destroyed too, with the same certainty.
 */
#ifndef HEARTH_EXT_SUBAGENTS_H
#define HEARTH_EXT_SUBAGENTS_H

#include <hearth/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HEARTH_EXT_SUBAGENTS "hearth.subagents/1"

enum {
  HEARTH_SUBAGENT_DEPTH = 8,
  /* Bytes of a name as a URL writes it, where each byte that is not plain ASCII has three. Names
   * have no control characters and are neither `.` nor `..`, so that URLs can reach every agent. */
  HEARTH_SUBAGENT_NAME_MAX = 256
};

/* Event: a client asks for an agent right below this one. asynchronous. name: the class; body: the
 * name. hearth.http/1 with `call` gives the head of the client's request, also for a WebSocket. OK
 * or UNSUPPORTED lets the client through. An error refuses it, and so does OK with a status of 400
 * or more (set_status of hearth.http/1). A refused request is answered with the status, the headers
 * (add_header) and the body of complete(). A refused WebSocket is closed with 4000 and the status
 * (4403), after which clients do not reconnect, or with 1011 for a status from 500 on. The event
 * comes once for each connection, not for its frames. For an agent further below, each agent on the
 * path gets the event, the topmost first. */
enum { HEARTH_EVENT_SUB_AGENT = 17 };

typedef struct hearth_subagents_filter {
  uint32_t struct_size;
  uint32_t limit; /* 1 to 1000; 0: 100 */
  /* Only agents after this one, which need not exist any more; both empty: from the beginning. */
  hearth_bytes after_class;
  hearth_bytes after_name;
} hearth_subagents_filter;

typedef struct hearth_subagents_v1 {
  /* The agents right below, in the order of their names and then of their classes:
   * [{"class":"Chat","name":"monday","created_at":1767312000000}], Unix milliseconds. Null: no
   * filter. [instance] */
  hearth_status (*list)(const hearth_host* host, hearth_agent agent,
                        const hearth_subagents_filter* filter, hearth_bytes* agents);

  /* Destroys an agent right below, and all agents below that one, as hearth.agent/1 does: certain
   * when it returns. NOT_FOUND. [instance] */
  hearth_status (*destroy)(const hearth_host* host, hearth_agent agent, hearth_bytes agent_class,
                           hearth_bytes name);

  /* The path of this agent, the topmost agent first, itself last:
   * [{"class":"Inbox","name":"user-123"},{"class":"Chat","name":"monday"}]. [instance] */
  hearth_status (*path)(const hearth_host* host, hearth_agent agent, hearth_bytes* path);
} hearth_subagents_v1;

HEARTH_STATIC_ASSERT(sizeof(hearth_subagents_filter) == 40, "grows at its end");
HEARTH_STATIC_ASSERT(sizeof(hearth_subagents_v1) == 3 * 8, "layout");

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* HEARTH_EXT_SUBAGENTS_H */
