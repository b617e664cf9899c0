/*
 * A small plugin in plain C. Definitions on the command line make every plugin that is broken in
 * one way: CMakeLists.txt beside this file lists them.
 */
#include <hearth/abi.h>
#include <hearth/ext/methods.h>
#include <hearth/ext/offload.h>
#include <hearth/ext/schema.h>

#include <unistd.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef CLASS_NAME
#define CLASS_NAME "Plain"
#endif
#ifndef NOTE
#define NOTE                                                               \
  "{\"plugin\":\"plain\",\"version\":\"1.0.0\",\"classes\":[\"" CLASS_NAME \
  "\"],\"extensions\":[\"hearth.log/1\"]}"
#endif

#ifndef WITHOUT_NOTE
HEARTH_PLUGIN_NOTE(NOTE);
#endif

#ifdef WITH_UNIQUE_SYMBOL
__asm__(
    ".data\n"
    ".globl only_one\n"
    ".type only_one, @gnu_unique_object\n"
    ".size only_one, 4\n"
    "only_one: .long 1\n"
    ".text\n");
#endif

#ifdef WITH_SECOND_EXPORT
__attribute__((visibility("default"))) int second_export(void);
int second_export(void) {
  return 2;
}
#endif

#ifdef WITH_UNDEFINED_SYMBOL
extern int no_such_function(void);
#endif

#ifdef CRASHES_IN_CONSTRUCTOR
__attribute__((constructor)) static void crash_early(void) {
  raise(SIGSEGV);
}
#endif
#ifdef CRASHES_IN_DESTRUCTOR
__attribute__((destructor)) static void crash_late(void) {
  raise(SIGBUS);
}
#endif

/* What one broken variant or another leaves out. */
#define MAYBE_UNUSED __attribute__((unused))

static const hearth_host* host;

typedef struct plain {
  hearth_agent agent;
  uint64_t call; /* the one that waits for a result */
} plain;

static hearth_bytes bytes(const char* text) {
  hearth_bytes slice = {text, strlen(text)};
  return slice;
}

static int is(hearth_bytes slice, const char* text) {
  return slice.len == strlen(text) && memcmp(slice.ptr, text, slice.len) == 0;
}

static hearth_status create(const hearth_class* self, const hearth_host* the_host,
                            hearth_agent agent, hearth_bytes name, hearth_bytes options,
                            void** instance) {
  (void)self;
  (void)options;
  if (the_host != host) return HEARTH_E_INVALID;
  if (is(name, "refused")) return HEARTH_E_FORBIDDEN;
  plain* made = malloc(sizeof *made);
  if (made == 0) return HEARTH_E_NOMEM;
  made->agent = agent;
  made->call = 0;
  *instance = made;
  return HEARTH_OK;
}

static void destroy(void* instance) {
  free(instance);
}

static hearth_status on_event(void* instance, const hearth_event* event) {
  plain* it = instance;
  const hearth_bytes none = {0, 0};
  if (event->kind == HEARTH_EVENT_START)
    return host->complete(host, it->agent, event->call, HEARTH_OK, none);
  if (event->kind != HEARTH_EVENT_CALL) return HEARTH_E_UNSUPPORTED;
  if (is(event->name, "echo"))
    return host->complete(host, it->agent, event->call, HEARTH_OK, event->body);
  if (is(event->name, "fail")) {
    return host->complete(host, it->agent, event->call, HEARTH_E_PLUGIN, bytes("as you wish"));
  }
  if (is(event->name, "wait")) {
    uint64_t id = 0;
    const uint64_t request = 5;
    const hearth_bytes slice = {&request, sizeof request};
    it->call = event->call;
    return host->submit(host, it->agent, HEARTH_OP_SLEEP, slice, 77, &id);
  }
  if (is(event->name, "odd")) return 12345; /* no status of the contract */
  return HEARTH_E_NOT_FOUND;
}

static void on_cancel(void* instance, uint64_t call) {
  plain* it = instance;
  if (it->call == call) it->call = 0;
}

MAYBE_UNUSED static void on_result(void* instance, const hearth_result* result) {
  plain* it = instance;
  if (it->call == 0 || (result->flags & HEARTH_RESULT_FINAL) == 0) return;
  const hearth_bytes answer = result->token == 77 ? bytes("77") : bytes("0");
  host->complete(host, it->agent, it->call, result->status,
                 result->status == HEARTH_OK ? answer : result->body);
  it->call = 0;
}

static hearth_status run_job(uint64_t job, uint32_t cancelled) {
  if (cancelled != 0) return HEARTH_OK;
  return job == 7 ? HEARTH_OK : HEARTH_E_PLUGIN;
}

static const hearth_offload_v1 offload = {.run = run_job};

MAYBE_UNUSED static const void* get_extension(const hearth_class* self, const char* id) {
  (void)self;
#ifdef WITH_METHODS
  static const hearth_method methods[] = {{.name = {"get", 3}, .flags = HEARTH_METHOD_IDEMPOTENT},
                                          {.name = {"add", 3}}};
  static const hearth_methods_v1 table = {sizeof table, WITH_METHODS, methods};
  if (strcmp(id, HEARTH_EXT_METHODS) == 0) return &table;
#endif
#ifdef WITH_SCHEMA
  static const hearth_schema_v1 schema = {sizeof schema, WITH_SCHEMA};
  if (strcmp(id, HEARTH_EXT_SCHEMA) == 0) return &schema;
#endif
  return strcmp(id, HEARTH_EXT_OFFLOAD) == 0 ? &offload : 0;
}

MAYBE_UNUSED static const hearth_class plain_class = {
    .struct_size = sizeof(hearth_class),
    .flags = HEARTH_CLASS_WATCHES_STATE,
#ifdef WITH_OTHER_CLASS_NAME
    .name = "Other",
#else
    .name = CLASS_NAME,
#endif
    .version = "1.2.3",
    .create = create,
    .destroy = destroy,
    .on_event = on_event,
    .on_cancel = on_cancel,
#ifndef WITHOUT_ON_RESULT
    .on_result = on_result,
#endif
    .get_extension = get_extension,
};

static hearth_status init(const hearth_host* the_host, hearth_bytes config) {
  (void)config;
  host = the_host;
#ifdef PRINTS_A_LOT
  for (int line = 0; line < 20000; ++line) {
    printf("{\"verdict\":\"refused\",\"rule\":\"L4\",\"reason\":\"garbage\"}\n");
    fprintf(stderr, "line %d of noise\n", line);
  }
  fflush(stdout);
#endif
#ifdef CRASHES_IN_INIT
  fprintf(stderr, "about to fall over\n");
  raise(SIGABRT);
#endif
#ifdef HANGS_IN_INIT
  for (;;) pause();
#endif
#ifdef EXITS_IN_INIT
  exit(0);
#endif
#ifdef FAILS_IN_INIT
  fprintf(stderr, "my licence has run out\n");
  return HEARTH_E_FORBIDDEN;
#endif
#ifdef STARTS_A_CHILD_AND_HANGS
  if (fork() == 0) {
    for (;;) pause();
  }
  for (;;) pause();
#endif
#ifdef WITH_UNDEFINED_SYMBOL
  return no_such_function();
#endif
  /* A host that answers what the contract says lets the library in. */
  const hearth_bytes none = {0, 0};
  if (host->struct_size < sizeof(hearth_host) || host->abi_major != HEARTH_ABI_MAJOR)
    return HEARTH_E_UNSUPPORTED;
  if (host->get_extension(host, "hearth.sql/1") == 0) return HEARTH_E_UNSUPPORTED;
  if (host->get_extension(host, "nobody.has/1") != 0) return HEARTH_E_INVALID;
  /* Which error is the host's choice: no such agent, or the wrong thread. It never accepts this
   * answer. */
  if (host->complete(host, 12345, 1, HEARTH_OK, none) >= 0) return HEARTH_E_INVALID;
  return HEARTH_OK;
}

MAYBE_UNUSED static hearth_status deinit(void) {
#ifdef IS_BUSY
  return HEARTH_E_BUSY;
#else
  return HEARTH_OK;
#endif
}

static const hearth_class* get_class(uint32_t index) {
#ifdef ANSWERS_EVERY_INDEX
  (void)index;
  return &plain_class;
#elif defined(WITH_NULL_CLASS)
  (void)index;
  return 0;
#else
  return index == 0 ? &plain_class : 0;
#endif
}

#ifdef ENTRY_IS_A_FUNCTION
__attribute__((visibility("default"))) const hearth_plugin* hearth_plugin_v1(void);
static const hearth_plugin plugin = {
#elif defined(WITH_LARGER_ENTRY)
/* A plugin of a later minor version, whose table is longer at its end. */
typedef struct grown {
  hearth_plugin head;
  uint64_t tail;
} grown;
HEARTH_EXPORT const grown hearth_plugin_v1 = {.tail = 1,
                                              .head = {
#else
HEARTH_EXPORT const hearth_plugin hearth_plugin_v1 = {
#endif
#ifdef WITH_WRONG_MAGIC
    .magic = HEARTH_MAGIC + 1,
#else
                                                  .magic = HEARTH_MAGIC,
#endif
#ifdef WITH_LARGER_ENTRY
    .struct_size = sizeof(grown),
#elif defined(WITH_SMALLER_ENTRY)
                                                  .struct_size = sizeof(hearth_plugin) - 8,
#else
    .struct_size = sizeof(hearth_plugin),
#endif
#ifdef WITH_OTHER_MAJOR
    .abi_major = HEARTH_ABI_MAJOR + 1,
#else
                                                  .abi_major = HEARTH_ABI_MAJOR,
#endif
    .abi_minor = HEARTH_ABI_MINOR,
#ifdef WITH_TWO_CLASSES_ANNOUNCED
    .class_count = 2,
#else
                                                  .class_count = 1,
#endif
    .init = init,
#ifndef WITHOUT_DEINIT
    .deinit = deinit,
#endif
    .get_class = get_class,
#ifdef WITH_LARGER_ENTRY
}
}
;
#else
                                              };
#endif

#ifdef ENTRY_IS_A_FUNCTION
const hearth_plugin* hearth_plugin_v1(void) {
  return &plugin;
}
#endif
