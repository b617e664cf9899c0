#pragma once
/*
 * One agent of the zoo: its methods and events, and the faults that definitions add to them. A part
 * of zoo.c.
 *
 *   methods  echo(any) -> the arguments;  wait() -> "waited", after an operation;
 *            note(text) -> rows in the database;  stay() -> as wait(), after 700 ms;
 *            mistake() -> what the database says to SQL that is none
 *   events   MESSAGE is taken, REQUEST is answered "ok"
 */
#include <hearth/abi.h>
#include <hearth/ext/http.h>
#include <hearth/ext/offload.h>
#include <hearth/ext/schema.h>
#include <hearth/ext/sleep.h>
#include <hearth/ext/sql.h>

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MAYBE_UNUSED __attribute__((unused))

/* Breaks the process or never returns, so that the compiler does not know. */
MAYBE_UNUSED static void crash(void) {
  volatile int* nowhere = 0;
  *nowhere = 1;
}
MAYBE_UNUSED static void hang(void) {
  volatile int for_ever = 1;
  while (for_ever) {
  }
}

MAYBE_UNUSED static void* crash_there(void* unused) {
#ifdef ABORTS_ON_ITS_THREAD
  abort();
#endif
  crash();
  return unused;
}

#if defined(CRASHES_IN_A_JOB) || defined(HANGS_IN_A_JOB) || defined(WORKS_IN_A_JOB)
#define HAS_JOBS
#endif

static const hearth_host* host;
static const hearth_sql_v1* sql;

enum { MAX_WAITS = 64 };

typedef struct zoo {
  hearth_agent agent;
  uint64_t waits[MAX_WAITS]; /* calls that wait for a result; the place is the token */
  hearth_bytes kept;
  int counted;
} zoo;

static hearth_bytes bytes(const char* text) {
  hearth_bytes slice = {text, strlen(text)};
  return slice;
}

static int is(hearth_bytes slice, const char* text) {
  return slice.len == strlen(text) && memcmp(slice.ptr, text, slice.len) == 0;
}

#ifdef SHARES_A_VARIABLE
/* One for all copies of the library, as a static member of a C++ template is without a version
 * script. */
__asm__(
    ".data\n"
    ".globl zoo_shared_host\n"
    ".type zoo_shared_host, @gnu_unique_object\n"
    ".size zoo_shared_host, 8\n"
    ".balign 8\n"
    "zoo_shared_host: .quad 0\n"
    ".text\n");
extern const hearth_host* zoo_shared_host;
#define HOST zoo_shared_host
#else
#define HOST host
#endif

#ifdef REMEMBERS_ITS_THREAD
/* "The agent of this thread": another thread has none. */
static _Thread_local hearth_agent agent_here;
#define AGENT(self) ((void)(self), agent_here)
#elif defined(ONE_AGENT_FOR_ALL)
static hearth_agent last_agent;
#define AGENT(self) ((void)(self), last_agent)
#else
#define AGENT(self) ((self)->agent)
#endif

static hearth_status complete(const zoo* self, uint64_t call, hearth_status status,
                              hearth_bytes body) {
  return HOST->complete(HOST, AGENT(self), call, status, body);
}

MAYBE_UNUSED static hearth_status execute(const zoo* self, const char* text) {
  hearth_statement statement = 0;
  hearth_status status = sql->prepare(HOST, AGENT(self), bytes(text), &statement);
  if (status >= 0) status = sql->step(HOST, AGENT(self), statement);
  sql->finalize(HOST, AGENT(self), statement);
#ifdef TRUSTS_THE_DATABASE
  if (status < 0) abort();
#endif
  return status;
}

static hearth_status create(const hearth_class* class_, const hearth_host* the_host,
                            hearth_agent agent, hearth_bytes name, hearth_bytes options,
                            void** instance) {
  (void)class_, (void)the_host, (void)name, (void)options;
#ifdef CRASHES_IN_CREATE
  crash();
#endif
#ifdef HANGS_IN_CREATE
  hang();
#endif
#ifdef NEEDS_OPTIONS
  if (!is(options, "{\"rounds\":3}")) return HEARTH_E_INVALID;
#endif
#ifdef TRUSTS_OPTIONS
  if (((const char*)options.ptr)[1] == 0) return HEARTH_E_INVALID;
#endif
  zoo* made = calloc(1, sizeof *made);
  if (made == 0) return HEARTH_E_NOMEM;
  made->agent = agent;
#ifdef REMEMBERS_ITS_THREAD
  agent_here = agent;
#endif
#ifdef ONE_AGENT_FOR_ALL
  last_agent = agent;
#endif
#ifdef KEEPS_A_SLICE
  made->kept = name;
#endif
#ifdef NO_SECOND_LIFE
  if (execute(made, "CREATE TABLE mine (x INTEGER)") < 0) {
    free(made);
    return HEARTH_E_CONFLICT;
  }
#endif
  *instance = made;
  return HEARTH_OK;
}

MAYBE_UNUSED static zoo* ghost; /* an agent that was destroyed */

static void destroy(void* instance) {
#ifdef CRASHES_IN_DESTROY
  crash();
#endif
#ifdef HANGS_IN_DESTROY
  hang();
#endif
#ifdef CALLS_FOR_THE_DEAD
  ghost = instance;
#elif !defined(LEAKS_AGENTS)
  free(instance);
#else
  (void)instance;
#endif
}

#ifdef CALLS_FROM_A_THREAD
typedef struct errand {
  hearth_agent agent;
  uint64_t call;
} errand;
static void* run_errand(void* given) {
  errand* it = given;
  const hearth_bytes none = {0, 0};
  host->complete(host, it->agent, it->call, HEARTH_OK, none);
  free(it);
  return 0;
}
static void send_errand(const zoo* self, uint64_t call) {
  pthread_t thread;
  errand* it = malloc(sizeof *it);
  it->agent = self->agent;
  it->call = call;
  pthread_create(&thread, 0, run_errand, it);
  pthread_join(thread, 0);
}
#endif

/* A wait that ends with the result of an operation. */
static hearth_status wait_for_result(zoo* self, uint64_t call, uint64_t milliseconds) {
  const hearth_sleep_request request = {milliseconds};
  const hearth_bytes slice = {&request, sizeof request};
  uint64_t id = 0, token = 0;
  while (token < MAX_WAITS && self->waits[token] != 0) ++token;
  if (token == MAX_WAITS) return HEARTH_E_LIMIT;
#ifdef HAS_JOBS
  const hearth_offload_request job = {1};
  const hearth_bytes work = {&job, sizeof job};
  const hearth_status begun = HOST->submit(HOST, AGENT(self), HEARTH_OP_OFFLOAD, work, token, &id);
  if (begun < 0) return begun;
  self->waits[token] = call;
  return HEARTH_OK;
#endif
#ifdef IGNORES_FAILED_SUBMITS
  self->waits[token] = call;
  if (HOST->submit(HOST, AGENT(self), HEARTH_OP_SLEEP, slice, token, &id) < 0) crash();
#else
  const hearth_status status = HOST->submit(HOST, AGENT(self), HEARTH_OP_SLEEP, slice, token, &id);
  if (status < 0) return status;
  self->waits[token] = call;
#endif
  return HEARTH_OK;
}

#ifdef READS_BODIES
static hearth_status read_body(zoo* self, uint64_t call) {
  const hearth_http_v1* http = HOST->get_extension(HOST, HEARTH_EXT_HTTP);
  uint64_t id = 0, token = 0;
  while (token < MAX_WAITS && self->waits[token] != 0) ++token;
  if (http == 0 || token == MAX_WAITS) return HEARTH_E_LIMIT;
  const hearth_status status = http->read_body(HOST, AGENT(self), call, 0, token, &id);
  if (status < 0) return status;
  self->waits[token] = call;
  return HEARTH_OK;
}
#endif

static hearth_status on_call(zoo* self, const hearth_event* event) {
#ifdef TRUSTS_ARGUMENTS
  /* Looks for the end of the array, wherever that may be. */
  const char* at = event->body.ptr;
  while (*at != ']') ++at;
#endif
  if (is(event->name, "echo")) return complete(self, event->call, HEARTH_OK, bytes("\"echo\""));
  if (is(event->name, "wait")) return wait_for_result(self, event->call, 1);
  if (is(event->name, "stay")) return wait_for_result(self, event->call, 700);
#ifdef FORGETS
  if (is(event->name, "count")) {
    char text[24];
    snprintf(text, sizeof text, "%d", ++self->counted);
    return complete(self, event->call, HEARTH_OK, bytes(text));
  }
#endif
  if (is(event->name, "mistake"))
    return complete(self, event->call, execute(self, "no statement"), bytes(""));
  if (is(event->name, "note")) {
    execute(self, "CREATE TABLE IF NOT EXISTS notes (n INTEGER)");
    const hearth_status status = execute(self, "INSERT INTO notes VALUES (1)");
    return complete(self, event->call, status < 0 ? status : HEARTH_OK, bytes(""));
  }
  return HEARTH_E_NOT_FOUND;
}

static hearth_status on_event(void* instance, const hearth_event* event) {
  zoo* self = instance;
  const hearth_bytes none = {0, 0};
#ifdef KEEPS_A_SLICE
  if (event->kind == HEARTH_EVENT_CONNECT && ((const char*)self->kept.ptr)[0] == 'x')
    return HEARTH_E_INVALID;
#endif
#ifdef CALLS_FOR_THE_DEAD
  if (ghost != 0 && ghost != self) {
    host->emit(host, ghost->agent, 1, none);
    ghost = 0;
  }
#endif
  switch (event->kind) {
    case HEARTH_EVENT_START:
#ifdef CRASHES_IN_START
      crash();
#endif
#ifdef HANGS_IN_START
      hang();
#endif
#ifdef NEVER_STARTS
      return HEARTH_OK;
#endif
      complete(self, event->call, HEARTH_OK, none);
      return HEARTH_OK;
    case HEARTH_EVENT_CONNECT:
    case HEARTH_EVENT_CLOSE: complete(self, event->call, HEARTH_OK, none); return HEARTH_OK;
    case HEARTH_EVENT_MESSAGE:
#ifdef CRASHES_IN_MESSAGE
      crash();
#endif
#if defined(CRASHES_ON_ITS_THREAD) || defined(ABORTS_ON_ITS_THREAD)
      {
        pthread_t thread;
        if (pthread_create(&thread, 0, crash_there, 0) == 0) pthread_join(thread, 0);
      }
#endif
#ifdef IS_SLOW
      {
        const struct timespec time = {0, 300 * 1000 * 1000};
        nanosleep(&time, 0);
      }
#endif
#ifdef HANGS_IN_MESSAGE
      hang();
#endif
#ifdef EXITS_IN_MESSAGE
      exit(3);
#endif
#ifdef OVERFLOWS_ITS_STACK
      {
        volatile char room[4096];
        room[0] = 1;
        const hearth_status status = on_event(instance, event);
        return room[0] == 1 ? status : HEARTH_OK;
      }
#endif
#ifdef CALLS_FROM_A_THREAD
      send_errand(self, event->call);
      return HEARTH_OK;
#endif
#ifdef COMPLETES_TWICE
      complete(self, event->call, HEARTH_OK, none);
#endif
#ifdef NEVER_COMPLETES
      return HEARTH_OK;
#endif
#ifdef REFUSES_AND_COMPLETES
      complete(self, event->call, HEARTH_OK, none);
      return HEARTH_E_INVALID;
#endif
#ifdef ODD_STATUS
      complete(self, event->call, HEARTH_OK, none);
      return 12345;
#endif
      complete(self, event->call, HEARTH_OK, none);
      return HEARTH_OK;
    case HEARTH_EVENT_CALL: {
      const hearth_status status = on_call(self, event);
      /* What complete() or the database has answered is not the event's business any more. */
      return status == HEARTH_E_NOT_FOUND || self->waits[0] == event->call ? status : HEARTH_OK;
    }
    case HEARTH_EVENT_REQUEST:
#ifdef READS_BODIES
      if ((event->flags & HEARTH_REQUEST_UNREAD_BODY) != 0) return read_body(self, event->call);
#endif
      complete(self, event->call, HEARTH_OK, bytes("ok"));
      return HEARTH_OK;
#ifdef MIGRATES
    case HEARTH_EVENT_MIGRATE: complete(self, event->call, MIGRATES, none); return HEARTH_OK;
#endif
#ifdef NEVER_MIGRATES
    case HEARTH_EVENT_MIGRATE: return HEARTH_OK;
#endif
#ifdef MIGRATES_ONCE
    case HEARTH_EVENT_MIGRATE: {
      static int times;
      complete(self, event->call, times++ == 0 ? HEARTH_OK : HEARTH_E_CONFLICT, none);
      return HEARTH_OK;
    }
#endif
    default:
#ifdef ACCEPTS_EVERYTHING
      if (event->call != 0) complete(self, event->call, HEARTH_OK, none);
      return HEARTH_OK;
#else
      return HEARTH_E_UNSUPPORTED;
#endif
  }
}

static void on_cancel(void* instance, uint64_t call) {
  zoo* self = instance;
#ifdef CRASHES_IN_CANCEL
  crash();
#endif
#ifdef HANGS_IN_CANCEL
  hang();
#endif
#ifdef TRUSTS_DEADLINES
  return; /* the result will come, and then complete() has to work */
#endif
  for (int token = 0; token < MAX_WAITS; ++token) {
    if (self->waits[token] == call) self->waits[token] = 0;
  }
}

static void on_result(void* instance, const hearth_result* result) {
  zoo* self = instance;
#ifdef CRASHES_IN_RESULT
  crash();
#endif
#ifdef HANGS_IN_RESULT
  hang();
#endif
#ifdef TRUSTS_TOKENS
  if (self->waits[result->token % (MAX_WAITS * 1024 * 1024)] == 0) crash();
#endif
  if (result->token >= MAX_WAITS || self->waits[result->token] == 0) return;
#ifdef TRUSTS_RESULTS
  if (result->status != HEARTH_OK) crash();
#endif
  const uint64_t call = self->waits[result->token];
#ifdef ANSWERS_EACH_PIECE
  complete(self, call, HEARTH_OK, bytes("ok"));
#endif
  if ((result->flags & HEARTH_RESULT_FINAL) == 0) return;
  self->waits[result->token] = 0;
  const hearth_status status = result->status;
  const hearth_status said = complete(self, call, status < 0 ? status : HEARTH_OK,
                                      status < 0 ? bytes("") : bytes("\"waited\""));
#ifdef TRUSTS_DEADLINES
  if (said == HEARTH_E_GONE) crash();
#else
  (void)said;
#endif
}
