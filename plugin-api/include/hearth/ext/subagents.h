/*
 * "hearth.subagents/1": agents below an agent.
 *
 * Any agent may have agents below it, of whatever class, each under a class and a name of its own:
 * they have their own database, state, clients and durable work, like all others, and live on the
 * thread of the one above. One is made by the first event that reaches it: a client at
 *
 *   /agents/inbox/user-123/sub/chat/monday[/sub/{class}/{name} ...]
 *
 * or a call (hearth.call/1) from above. Its code is told its own name alone ("monday"); names are
 * decoded. At most HEARTH_SUBAGENT_DEPTH agents stand above one.
 *
 * When an agent is destroyed, all below it are destroyed with it: it is as certain as its own end.
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
  HEARTH_SUBAGENT_NAME_MAX = 512 /* bytes of a name, decoded; without control characters */
};

/* Event: a client asks for an agent right below this one. asynchronous. name: the class that is
 * asked for; body: the name. The head of the client's request through hearth.http/1 with `call`,
 * also if it is a WebSocket's. OK or UNSUPPORTED lets it through. An error refuses it, and so does
 * OK with a status of 400 or more (hearth.http/1 set_status): a request is answered with it, a
 * WebSocket is closed with 4000 and that status (4403), which stops clients, or 1011 for a status
 * from 500 on. Once an agent is connected, its frames are not asked about. For one further below
 * each agent on the way is asked, the topmost first. */
enum { HEARTH_EVENT_SUB_AGENT = 17 };

typedef struct hearth_subagents_filter {
  uint32_t struct_size;
  uint32_t limit; /* 1 to 1000; 0: 100 */
  /* Behind this one, which need not be there any more; both empty: from the beginning. */
  hearth_bytes after_class;
  hearth_bytes after_name;
} hearth_subagents_filter;

typedef struct hearth_subagents_v1 {
  /* Those right below, in the order of their names and then of their classes:
   * [{"class":"Chat","name":"monday","created_at":1767312000000}], Unix milliseconds. Null: no
   * filter. [instance] */
  hearth_status (*list)(const hearth_host* host, hearth_agent agent,
                        const hearth_subagents_filter* filter, hearth_bytes* agents);

  /* Destroys one right below, and all below it, as hearth.agent/1 does: certain when it returns.
   * NOT_FOUND. [instance] */
  hearth_status (*destroy)(const hearth_host* host, hearth_agent agent, hearth_bytes agent_class,
                           hearth_bytes name);

  /* The way to this agent, the topmost first, itself last:
   * [{"class":"Inbox","name":"user-123"},{"class":"Chat","name":"monday"}]. [instance] */
  hearth_status (*path)(const hearth_host* host, hearth_agent agent, hearth_bytes* path);
} hearth_subagents_v1;

HEARTH_STATIC_ASSERT(sizeof(hearth_subagents_filter) == 40, "grows at its end");
HEARTH_STATIC_ASSERT(sizeof(hearth_subagents_v1) == 3 * 8, "frozen");

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* HEARTH_EXT_SUBAGENTS_H */
