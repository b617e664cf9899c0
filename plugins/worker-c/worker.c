/*
 * Durable work in plain C: runs of slow steps that go on after the server was killed.
 *
 *   run(steps, step_ms)  begins a run, one step every step_ms -> its name, "run-1"
 *   status()             -> {"runs":[{"run":"run-1","steps":[1,2],"finished":false}],
 *                            "recoveries":0,"ticks":[]}
 *   tick_in(ms)          schedules a tick: "schedule" among the ticks, once ms have passed
 *   tick_next()          queues one: "queue" among the ticks, soon
 *   hold()               takes a keep-alive reference and never releases it
 *
 * A run is a fiber: a record that the host keeps while the work is in progress, with a name, an
 * input and a checkpoint. Each step is a row in this agent's own table and a new checkpoint. After
 * a kill the host offers the fiber (recover() below), and the run goes on from its checkpoint,
 * without any data in memory.
 */
#include <hearth/abi.h>
#include <hearth/ext/agent.h>
#include <hearth/ext/fibers.h>
#include <hearth/ext/keep_alive.h>
#include <hearth/ext/log.h>
#include <hearth/ext/queue.h>
#include <hearth/ext/schedule.h>
#include <hearth/ext/sleep.h>
#include <hearth/ext/sql.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The host's tables, looked up once in init and constant after that. */
static const hearth_agent_v1* life;
static const hearth_fibers_v1* fibers;
static const hearth_keep_alive_v1* keep_alive;
static const hearth_log_v1* log_lines;
static const hearth_queue_v1* queue;
static const hearth_schedule_v1* schedule;
static const hearth_sql_v1* sql;

/* A run whose work is in progress in this instance. Its place in worker.runs is the token of its
 * sleeps. */
typedef struct work {
  int64_t number; /* 7 is "run-7"; 0: a free place */
  int64_t total, step_ms, done;
  hearth_fiber fiber;
} work;

enum { MAX_RUNS = 64, MAX_JSON = 160 };

typedef struct worker {
  const hearth_host* host;
  hearth_agent agent;
  work runs[MAX_RUNS];
} worker;

/* The first two arguments of nearly every function of the host. */
#define AGENT(self) (self)->host, (self)->agent

static hearth_bytes text(const char* s) {
  return (hearth_bytes){s, strlen(s)};
}

/* Copies lent bytes, which have no final NUL. An empty text if they do not fit. */
static const char* copy_text(hearth_bytes bytes, char* out, size_t size) {
  const size_t len = bytes.len < size ? bytes.len : 0;
  if (len > 0) memcpy(out, bytes.ptr, len);
  out[len] = 0;
  return out;
}

/* Completes an event. For a failure without a text: the host's text about its last failure. */
static hearth_status answer(const worker* self, const hearth_event* event, hearth_status status,
                            const char* words) {
  hearth_bytes body = text(words);
  if (status < 0 && body.len == 0) self->host->last_error(AGENT(self), &body);
  self->host->complete(AGENT(self), event->call, status, body);
  return HEARTH_OK; /* the event was accepted, whatever its outcome */
}

/* Runs a statement with up to two numbers for its placeholders. */
static hearth_status execute(const worker* self, const char* statement_text, uint32_t count,
                             int64_t first, int64_t second) {
  hearth_statement statement = 0;
  hearth_status status = sql->prepare(AGENT(self), text(statement_text), &statement);
  if (status < 0) return status;
  if (count > 0) status = sql->bind_int64(AGENT(self), statement, 1, first);
  if (count > 1 && status >= 0) status = sql->bind_int64(AGENT(self), statement, 2, second);
  if (status >= 0) status = sql->step(AGENT(self), statement);
  sql->finalize(AGENT(self), statement);
  return status;
}

/* Waits for the next step, or ends the run: its mark and the end of its fiber share the running
 * turn, so both are on disk or neither. If the work cannot go on, it is not lost: the agent leaves
 * memory, the fiber's record stays, and the host offers it again. */
static void go_on(worker* self, work* run, hearth_status status) {
  const hearth_sleep_request sleep = {(uint64_t)run->step_ms};
  uint64_t id = 0;
  if (status >= 0 && run->done < run->total)
    status = self->host->submit(AGENT(self), HEARTH_OP_SLEEP, (hearth_bytes){&sleep, sizeof sleep},
                                (uint64_t)(run - self->runs), &id);
  else if (status >= 0)
    status = execute(self, "UPDATE runs SET finished = 1 WHERE id = ?", 1, run->number, 0);
  if (status < 0) {
    life->evict(AGENT(self));
  } else if (run->done >= run->total) {
    char line[48];
    hearth_bytes record = {NULL, 0};
    snprintf(line, sizeof line, "run-%ld is finished", run->number);
    log_lines->write(AGENT(self), HEARTH_LOG_INFO, text(line));
    fibers->settle(AGENT(self), run->fiber, HEARTH_FIBER_COMPLETED, text(""), &record);
    run->number = 0;
  }
}

/* The JSON of a run, for its input and its checkpoint. */
static const char* write_run(const work* run, char* json) {
  snprintf(json, MAX_JSON, "{\"run\":\"run-%ld\",\"done\":%ld,\"total\":%ld,\"step_ms\":%ld}",
           run->number, run->done, run->total, run->step_ms);
  return json;
}

/* A step: first its row, then the checkpoint. stash commits the turn: when it returns both are on
 * disk, and until then neither. With the checkpoint first, a kill in between could lose the step.
 * An effect outside this database, such as a message, comes before the checkpoint too, and a kill
 * in between repeats it. If a step crashes the server, that counts against its own run: works_for
 * names the run. */
static void on_result(void* instance, const hearth_result* result) {
  static const char insert[] =
      "INSERT INTO steps(run, step, at) VALUES('run-' || ?, ?, "
      "CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER))";
  worker* self = instance;
  char json[MAX_JSON];
  if (result->operation != HEARTH_OP_SLEEP || result->token >= MAX_RUNS) return;
  work* run = &self->runs[result->token];
  fibers->works_for(AGENT(self), run->fiber, 0);
  ++run->done;
  hearth_status status = execute(self, insert, 2, run->number, run->done);
  if (status >= 0) status = fibers->stash(AGENT(self), run->fiber, text(write_run(run, json)));
  go_on(self, run, status);
}

/* A free place for one more run; NULL: there is none. */
static work* free_place(worker* self) {
  work* run = self->runs;
  while (run < self->runs + MAX_RUNS && run->number != 0) ++run;
  return run < self->runs + MAX_RUNS ? run : NULL;
}

/* Begins the fiber of a run. Its input has everything that a recovery before the first checkpoint
 * needs. When start returns, the record and all earlier writes of this turn are on disk. */
static hearth_status begin(worker* self, work plan) {
  char json[MAX_JSON];
  hearth_bytes record = {NULL, 0};
  work* run = free_place(self);
  if (run == NULL) return HEARTH_E_LIMIT;
  const hearth_fiber_start request = {
      .struct_size = sizeof request, .name = text("run"), .input = text(write_run(&plan, json))};
  const hearth_status status = fibers->start(AGENT(self), &request, &plan.fiber, &record);
  if (status < 0) return status;
  *run = plan;
  go_on(self, run, HEARTH_OK);
  return HEARTH_OK;
}

/* Arguments are a JSON array. A real plugin has a JSON library; two numbers are read like this. */
static hearth_status on_run(worker* self, const hearth_event* event) {
  char json[64];
  int length = 0; /* set by %n, after everything else matched; nine digits cannot overflow */
  work plan = {0};
  sscanf(copy_text(event->body, json, sizeof json), " [ %9ld , %9ld ] %n", &plan.total,
         &plan.step_ms, &length);
  if (length == 0 || json[length] != 0 || plan.total < 1 || plan.step_ms < 0)
    return answer(self, event, HEARTH_E_INVALID, "run takes two numbers: steps, step_ms");
  hearth_status status = execute(self, "INSERT INTO runs VALUES(NULL, 0, 0)", 0, 0, 0);
  if (status >= 0) status = sql->last_insert_rowid(AGENT(self), &plan.number);
  if (status >= 0) status = begin(self, plan);
  snprintf(json, sizeof json, "\"run-%ld\"", plan.number);
  answer(self, event, status, status < 0 ? "" : json);
  if (status < 0) execute(self, "DELETE FROM runs WHERE id = ?", 1, plan.number, 0);
  return HEARTH_OK;
}

/* The number after a name in JSON; -1: there is none. A run's input and checkpoint have the same
 * names; the checkpoint comes first in the body of the host. */
static long number_of(const char* json, const char* name) {
  long number = -1;
  const char* found = strstr(json, name);
  if (found != NULL) sscanf(found + strlen(name), "%18ld", &number);
  return number;
}

/* The host offers an interrupted fiber. name: as in begin(); body: JSON with "id", "snapshot" (the
 * last checkpoint, or null) and "record", which has the input. resume makes it run in this
 * instance. A name that this version does not know is NOT_FOUND: the fiber waits for a version that
 * knows it. Any other error keeps the fiber too: it is offered again after a while. */
static hearth_status recover(worker* self, const hearth_event* event) {
  static const char count[] = "UPDATE runs SET recoveries = recoveries + 1 WHERE id = ?";
  char body[2048], name[8], id[37];
  if (strcmp(copy_text(event->name, name, sizeof name), "run") != 0)
    return answer(self, event, HEARTH_E_NOT_FOUND, "the only fiber is run");
  copy_text(event->body, body, sizeof body);
  work plan = {.number = number_of(body, "\"run\":\"run-"),
               .total = number_of(body, "\"total\":"),
               .step_ms = number_of(body, "\"step_ms\":"),
               .done = number_of(body, "\"done\":")}; /* without a checkpoint: the input's number */
  if (sscanf(body, "{\"id\":\"%36[^\"]", id) != 1 || plan.number < 1 || plan.done < 0)
    return answer(self, event, HEARTH_E_INVALID, "not a run of this class");
  work* run = free_place(self);
  if (run == NULL) return answer(self, event, HEARTH_E_LIMIT, "too many runs are under way");
  hearth_status status = execute(self, count, 1, plan.number, 0);
  if (status >= 0) status = fibers->resume(AGENT(self), text(id), &plan.fiber);
  if (status >= 0) {
    *run = plan;
    go_on(self, run, HEARTH_OK);
  }
  return answer(self, event, status, "");
}

/* A call for later. "tick" is this class's only callback, for schedules and the queue alike. Both
 * are rows of the host, written with this turn: the call comes, even after a crash. */
static hearth_status on_tick_in(const worker* self, const hearth_event* event) {
  char json[32];
  int length = 0;
  long wait = -1;
  hearth_bytes record = {NULL, 0};
  uint32_t created = 0;
  sscanf(copy_text(event->body, json, sizeof json), " [ %9ld ] %n", &wait, &length);
  if (length == 0 || json[length] != 0 || wait < 0)
    return answer(self, event, HEARTH_E_INVALID, "tick_in takes a number of milliseconds");
  const hearth_schedule_request request = {.struct_size = sizeof request,
                                           .type = HEARTH_SCHEDULE_DELAY,
                                           .callback = text("tick"),
                                           .when_ms = wait};
  return answer(self, event, schedule->create(AGENT(self), &request, &record, &created), "");
}
static hearth_status on_tick_next(const worker* self, const hearth_event* event) {
  const hearth_queue_request request = {.struct_size = sizeof request, .callback = text("tick")};
  hearth_bytes record = {NULL, 0};
  return answer(self, event, queue->push(AGENT(self), &request, &record), "");
}

/* A schedule is due, or an item is next. OK: done. An error: retried. NOT_FOUND: kept, not retried
 * soon. */
static hearth_status on_tick(const worker* self, const hearth_event* event) {
  char callback[8];
  if (strcmp(copy_text(event->name, callback, sizeof callback), "tick") != 0)
    return answer(self, event, HEARTH_E_NOT_FOUND, "the only callback is tick");
  return answer(self, event,
                execute(self, "INSERT INTO ticks VALUES(iif(?, 'queue', 'schedule'))", 1,
                        event->kind == HEARTH_EVENT_QUEUE_ITEM, 0),
                "");
}

static hearth_status on_status(const worker* self, const hearth_event* event) {
  static const char query[] = /* SQLite can write JSON */
      "SELECT json_object('runs', json((SELECT json_group_array(json_object('run', 'run-' || id, "
      "'steps', json((SELECT json_group_array(step) FROM (SELECT step FROM steps "
      "WHERE run = 'run-' || id ORDER BY steps.rowid))), "
      "'finished', json(iif(finished, 'true', 'false')))) FROM runs)), "
      "'recoveries', (SELECT coalesce(sum(recoveries), 0) FROM runs), "
      "'ticks', json((SELECT json_group_array(origin) FROM ticks)))";
  hearth_statement statement = 0;
  hearth_bytes json = {NULL, 0};
  hearth_status status = sql->prepare(AGENT(self), text(query), &statement);
  if (status >= 0) status = sql->step(AGENT(self), statement);
  if (status >= 0) status = sql->column_bytes(AGENT(self), statement, 0, &json);
  if (status >= 0)
    self->host->complete(AGENT(self), event->call, HEARTH_OK, json);
  else
    answer(self, event, status, "");
  sql->finalize(AGENT(self), statement); /* not earlier: the bytes belong to the statement */
  return HEARTH_OK;
}

/* First tells the host that this work belongs to no run, so that a crash counts against none of
 * them. */
static hearth_status on_start(const worker* self, const hearth_event* event) {
  static const char runs[] =
      "CREATE TABLE IF NOT EXISTS runs(id INTEGER PRIMARY KEY, recoveries INTEGER, finished "
      "INTEGER)";
  static const char steps[] =
      "CREATE TABLE IF NOT EXISTS steps(run TEXT, step INTEGER, at INTEGER)";
  static const char ticks[] = "CREATE TABLE IF NOT EXISTS ticks(origin TEXT)";
  fibers->works_for(AGENT(self), 0, 0);
  hearth_status status = execute(self, runs, 0, 0, 0);
  if (status >= 0) status = execute(self, steps, 0, 0, 0);
  if (status >= 0) status = execute(self, ticks, 0, 0, 0);
  return answer(self, event, status, "");
}

static hearth_status on_call(worker* self, const hearth_event* event) {
  char method[65];
  char problem[128];
  copy_text(event->name, method, sizeof method);
  if (strcmp(method, "run") == 0) return on_run(self, event);
  if (strcmp(method, "status") == 0) return on_status(self, event);
  if (strcmp(method, "tick_in") == 0) return on_tick_in(self, event);
  if (strcmp(method, "tick_next") == 0) return on_tick_next(self, event);
  if (strcmp(method, "hold") == 0) return answer(self, event, keep_alive->acquire(AGENT(self)), "");
  snprintf(problem, sizeof problem, "Method %s does not exist", method);
  return answer(self, event, HEARTH_E_NOT_FOUND, problem);
}

static hearth_status on_event(void* instance, const hearth_event* event) {
  switch (event->kind) {
    case HEARTH_EVENT_START: return on_start(instance, event);
    case HEARTH_EVENT_CALL: return on_call(instance, event);
    case HEARTH_EVENT_FIBER_RECOVERED: return recover(instance, event);
    case HEARTH_EVENT_SCHEDULE:
    case HEARTH_EVENT_QUEUE_ITEM: return on_tick(instance, event);
    case HEARTH_EVENT_CONNECT:
    case HEARTH_EVENT_MESSAGE:
    case HEARTH_EVENT_CLOSE: return answer(instance, event, HEARTH_OK, "");
    default: return HEARTH_E_UNSUPPORTED; /* also events of later versions */
  }
}

static hearth_status create(const hearth_class* self, const hearth_host* host, hearth_agent agent,
                            hearth_bytes name, hearth_bytes options, void** instance) {
  worker* made = calloc(1, sizeof *made);
  (void)self, (void)name, (void)options;
  if (made == NULL) return HEARTH_E_NOMEM;
  made->host = host;
  made->agent = agent;
  *instance = made;
  return HEARTH_OK;
}

/* An eviction may come at any moment, like a kill: work in progress is in the database. */
static void destroy(void* instance) {
  free(instance);
}

/* Events are completed at once, so none is cancelled. */
static void on_cancel(void* instance, uint64_t call) {
  (void)instance, (void)call;
}

static const hearth_class worker_class = {.struct_size = sizeof(hearth_class),
                                          .name = "WorkerC",
                                          .version = "1.0.0",
                                          .create = create,
                                          .destroy = destroy,
                                          .on_event = on_event,
                                          .on_cancel = on_cancel,
                                          .on_result = on_result};

static hearth_status init(const hearth_host* host, hearth_bytes config) {
  (void)config;
  life = host->get_extension(host, HEARTH_EXT_AGENT);
  fibers = host->get_extension(host, HEARTH_EXT_FIBERS);
  keep_alive = host->get_extension(host, HEARTH_EXT_KEEP_ALIVE);
  log_lines = host->get_extension(host, HEARTH_EXT_LOG);
  queue = host->get_extension(host, HEARTH_EXT_QUEUE);
  schedule = host->get_extension(host, HEARTH_EXT_SCHEDULE);
  sql = host->get_extension(host, HEARTH_EXT_SQL);
  return life && fibers && keep_alive && log_lines && queue && schedule && sql
             ? HEARTH_OK
             : HEARTH_E_UNSUPPORTED;
}

static hearth_status deinit(void) {
  return HEARTH_OK;
}
static const hearth_class* get_class(uint32_t index) {
  return index == 0 ? &worker_class : NULL;
}

HEARTH_EXPORT const hearth_plugin hearth_plugin_v1 = {.magic = HEARTH_MAGIC,
                                                      .struct_size = sizeof(hearth_plugin),
                                                      .abi_major = HEARTH_ABI_MAJOR,
                                                      .abi_minor = HEARTH_ABI_MINOR,
                                                      .class_count = 1,
                                                      .init = init,
                                                      .deinit = deinit,
                                                      .get_class = get_class};

HEARTH_PLUGIN_NOTE(
    "{\"plugin\":\"worker-c\",\"version\":\"1.0.0\",\"classes\":[\"WorkerC\"],"
    "\"extensions\":[\"hearth.agent/1\",\"hearth.fibers/1\","
    "\"hearth.keep_alive/1\",\"hearth.log/1\",\"hearth.queue/1\",\"hearth.schedule/1\","
    "\"hearth.sql/1\"]}");
