/*
 * An agent in C that uses the extensions which joined 1.0: queue, schedule, managed fibers, methods, schema.
 *
 *   begin()   puts one item into the queue, one schedule a millisecond ahead, and does one managed fiber's work
 *   seen()    -> ["queue:item", ...]: the first things that were delivered to this instance, in order of arrival
 */
#include <hearth/abi.h>
#include <hearth/ext/managed_fibers.h>
#include <hearth/ext/methods.h>
#include <hearth/ext/queue.h>
#include <hearth/ext/schedule.h>
#include <hearth/ext/schema.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const hearth_queue_v1* queue;
static const hearth_schedule_v1* schedules;
static const hearth_managed_fibers_v1* managed;

typedef struct planner {
  const hearth_host* host;
  hearth_agent agent;
  char seen[512]; /* "\"queue:item\",\"schedule:tick\"" */
} planner;

#define AGENT(self) (self)->host, (self)->agent

static hearth_bytes text(const char* s) {
  return (hearth_bytes){s, strlen(s)};
}
static int is(hearth_bytes bytes, const char* s) {
  return bytes.len == strlen(s) && memcmp(bytes.ptr, s, bytes.len) == 0;
}

static hearth_status complete(const planner* self, const hearth_event* event, hearth_status status,
                              hearth_bytes body) {
  if (status < 0) self->host->last_error(AGENT(self), &body);
  self->host->complete(AGENT(self), event->call, status, body);
  return HEARTH_OK;
}

static hearth_status delivered(planner* self, const hearth_event* event, const char* kind) {
  const size_t used = strlen(self->seen);
  const size_t needed = strlen(kind) + event->name.len + sizeof ",\":\"";
  if (needed <= sizeof self->seen - used)
    snprintf(self->seen + used, sizeof self->seen - used, "%s\"%s:%.*s\"", used > 0 ? "," : "",
             kind, (int)event->name.len, (const char*)event->name.ptr);
  return complete(self, event, HEARTH_OK, text(""));
}

static hearth_status begin(const planner* self, const hearth_event* event) {
  const hearth_queue_request item = {
      .struct_size = sizeof item, .callback = text("item"), .payload = text("[1]")};
  const hearth_schedule_request tick = {.struct_size = sizeof tick,
                                        .type = HEARTH_SCHEDULE_DELAY,
                                        .callback = text("tick"),
                                        .when_ms = 1};
  const hearth_fiber_request work = {
      .struct_size = sizeof work, .name = text("work"), .key = text("only once")};
  hearth_bytes record;
  uint32_t created = 0;
  hearth_fiber fiber = 0;
  hearth_status status = queue->push(AGENT(self), &item, &record);
  if (status >= 0) status = schedules->create(AGENT(self), &tick, &record, &created);
  if (status >= 0) status = managed->start(AGENT(self), &work, &fiber, &record);
  if (status >= 0)
    status = managed->settle(AGENT(self), fiber, HEARTH_FIBER_COMPLETED, text("42"), &record);
  return complete(self, event, status, text("true"));
}

static hearth_status seen(const planner* self, const hearth_event* event) {
  char json[sizeof self->seen + 3];
  snprintf(json, sizeof json, "[%s]", self->seen);
  return complete(self, event, HEARTH_OK, text(json));
}

static hearth_status on_event(void* instance, const hearth_event* event) {
  switch (event->kind) {
    case HEARTH_EVENT_CALL:
      if (is(event->name, "begin")) return begin(instance, event);
      if (is(event->name, "seen")) return seen(instance, event);
      return HEARTH_E_NOT_FOUND;
    case HEARTH_EVENT_QUEUE_ITEM: return delivered(instance, event, "queue");
    case HEARTH_EVENT_SCHEDULE: return delivered(instance, event, "schedule");
    case HEARTH_EVENT_FIBER_SETTLED: return delivered(instance, event, "settled");
    case HEARTH_EVENT_MIGRATE: return complete(instance, event, HEARTH_OK, text(""));
    default: return HEARTH_E_UNSUPPORTED;
  }
}

static hearth_status create(const hearth_class* self, const hearth_host* host, hearth_agent agent,
                            hearth_bytes name, hearth_bytes options, void** instance) {
  planner* made = malloc(sizeof *made);
  (void)self, (void)name, (void)options;
  if (made == NULL) return HEARTH_E_NOMEM;
  *made = (planner){.host = host, .agent = agent};
  *instance = made;
  return HEARTH_OK;
}
static void destroy(void* instance) {
  free(instance);
}
static void on_cancel(void* instance, uint64_t call) {
  (void)instance, (void)call;
}
static void on_result(void* instance, const hearth_result* result) {
  (void)instance, (void)result;
}

static const void* get_extension(const hearth_class* self, const char* id) {
  static const hearth_method listed[] = {{.name = {"seen", 4}, .flags = HEARTH_METHOD_IDEMPOTENT}};
  static const hearth_methods_v1 methods = {sizeof methods, 1, listed};
  static const hearth_schema_v1 schema = {sizeof schema, 2};
  (void)self;
  if (strcmp(id, HEARTH_EXT_METHODS) == 0) return &methods;
  if (strcmp(id, HEARTH_EXT_SCHEMA) == 0) return &schema;
  return NULL;
}

static const hearth_class planner_class = {.struct_size = sizeof(hearth_class),
                                           .name = "PlannerC",
                                           .version = "1.0.0",
                                           .create = create,
                                           .destroy = destroy,
                                           .on_event = on_event,
                                           .on_cancel = on_cancel,
                                           .on_result = on_result,
                                           .get_extension = get_extension};

static hearth_status init(const hearth_host* host, hearth_bytes config) {
  (void)config;
  queue = host->get_extension(host, HEARTH_EXT_QUEUE);
  schedules = host->get_extension(host, HEARTH_EXT_SCHEDULE);
  managed = host->get_extension(host, HEARTH_EXT_MANAGED_FIBERS);
  return queue != NULL && schedules != NULL && managed != NULL ? HEARTH_OK : HEARTH_E_UNSUPPORTED;
}
static hearth_status deinit(void) {
  return HEARTH_OK;
}
static const hearth_class* get_class(uint32_t index) {
  return index == 0 ? &planner_class : NULL;
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
    "{\"plugin\":\"planner-c\",\"version\":\"1.0.0\",\"classes\":[\"PlannerC\"],"
    "\"extensions\":[\"hearth.queue/1\",\"hearth.schedule/1\",\"hearth.managed_fibers/1\"]}");
