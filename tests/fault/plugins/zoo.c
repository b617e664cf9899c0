/*
 * A plugin that keeps the contract. Definitions on the command line make every plugin that breaks
 * one rule of it: CMakeLists.txt beside this file lists them, and
 * tests/plugins/check/check_zoo_test.cpp says what `hearth check` finds.
 *
 * zoo_agent.h has its agents. Here are the library and its classes.
 */
#include "zoo_agent.h"

#include <hearth/ext/log.h>
#include <hearth/ext/operations.h>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <locale.h>
#include <signal.h>

/* ---- faults while it is loaded ---- */

#ifdef SLOW_CONSTRUCTOR
__attribute__((constructor)) static void take_time(void) {
  const struct timespec time = {0, 150 * 1000 * 1000};
  nanosleep(&time, 0);
}
#endif

MAYBE_UNUSED static void on_signal(int number) {
  (void)number;
}
MAYBE_UNUSED static void free_key(void* value) {
  (void)value;
}
/* Not in the trial, nor in a check. */
MAYBE_UNUSED static int is_served(void) {
  char text[4096] = "";
  const int file = open("/proc/self/cmdline", O_RDONLY);
  const ssize_t size = file < 0 ? 0 : read(file, text, sizeof text - 1);
  if (file >= 0) close(file);
  for (ssize_t at = 0; at < size; ++at) {
    if (strncmp(text + at, "--plugin-", 9) == 0) return 0;
  }
  return 1;
}

/* ---- jobs and extensions ---- */

/* As a read from a peer that never answers: it takes no processor, and no signal ends it. */
MAYBE_UNUSED static void wait_for_ever(void) {
  volatile int for_ever = 1;
  while (for_ever) pause();
}

#ifdef HAS_JOBS
static hearth_status run_job(uint64_t job, uint32_t cancelled) {
  (void)job, (void)cancelled;
#ifdef HANGS_IN_A_JOB
  if (!cancelled) wait_for_ever();
#elif defined(CRASHES_IN_A_JOB)
  if (!cancelled) crash();
#endif
  return HEARTH_OK;
}
#endif

static const void* get_extension(const hearth_class* class_, const char* id) {
  (void)class_, (void)id;
#ifdef CRASHES_IN_GET_EXTENSION
  crash();
#endif
#ifdef HANGS_IN_GET_EXTENSION
  hang();
#endif
#ifdef HAS_JOBS
  static const hearth_offload_v1 jobs = {.run = run_job};
  if (strcmp(id, HEARTH_EXT_OFFLOAD) == 0) return &jobs;
#endif
#ifdef LACKS_AN_ANSWER
  static const hearth_operation_kind kind = {
      .name = {"charge", 6}, .effect = HEARTH_EFFECT_UNSAFE, .same = {"the order", 9}};
  static const hearth_operation_kinds_v1 kinds = {sizeof kinds, 1, &kind};
  if (strcmp(id, HEARTH_EXT_OPERATION_KINDS) == 0) return &kinds;
#endif
#ifdef SCHEMA_VERSION
  static const hearth_schema_v1 schema = {sizeof schema, SCHEMA_VERSION};
  if (strcmp(id, HEARTH_EXT_SCHEMA) == 0) return &schema;
#endif
  return 0;
}

static const hearth_class zoo_class = {.struct_size = sizeof(hearth_class),
#ifdef READS_BODIES
                                       .flags = HEARTH_CLASS_READS_BODIES,
#endif
                                       .name = "Zoo",
                                       .version = "1.0.0",
                                       .create = create,
                                       .destroy = destroy,
                                       .on_event = on_event,
                                       .on_cancel = on_cancel,
                                       .on_result = on_result,
                                       .get_extension = get_extension};

#ifdef TWO_CLASSES
static hearth_status on_event_of_second(void* instance, const hearth_event* event) {
#ifdef CRASHES_IN_SECOND_CLASS
  if (event->kind == HEARTH_EVENT_EVICT) abort();
#endif
  return on_event(instance, event);
}
static const hearth_class second_class = {.struct_size = sizeof(hearth_class),
                                          .name = "Zebra",
                                          .version = "1.0.0",
                                          .create = create,
                                          .destroy = destroy,
                                          .on_event = on_event_of_second,
                                          .on_cancel = on_cancel,
                                          .on_result = on_result,
                                          .get_extension = get_extension};
enum { CLASS_COUNT = 2 };
#define CLASS_NAMES "\"Zoo\",\"Zebra\""
#else
enum { CLASS_COUNT = 1 };
#define CLASS_NAMES "\"Zoo\""
#endif

/* ---- the library ---- */

#ifdef JOINS_ITS_THREAD
/* As HEARTH_PLUGIN_THREADS allows: it ends before deinit() returns. */
static pthread_t helper;
static volatile sig_atomic_t stop;
static void* help(void* unused) {
  const struct timespec pause_between = {0, 1000 * 1000};
  while (!stop) nanosleep(&pause_between, 0);
  return unused;
}
#endif

static hearth_status init(const hearth_host* the_host, hearth_bytes config) {
  (void)config;
  host = the_host;
#ifdef SHARES_A_VARIABLE
  zoo_shared_host = the_host;
#endif
  sql = host->get_extension(host, HEARTH_EXT_SQL);
#ifdef TRUSTS_EXTENSIONS
  const hearth_log_v1* log = host->get_extension(host, HEARTH_EXT_LOG);
  log->write(host, 0, HEARTH_LOG_DEBUG, bytes("hello"));
#endif
#ifdef TRUSTS_THE_TABLE
  host->post(host, 1, 1);
#endif
#ifdef HANDLES_A_SIGNAL
  signal(SIGUSR1, on_signal);
#endif
#ifdef LEAVES_A_THREAD
  pthread_t thread;
  // It runs no code of this library, which may be unloaded before it has begun.
  pthread_create(&thread, 0, (void* (*)(void*))(void (*)(void))pause, 0);
#endif
#ifdef CHANGES_THE_LOCALE
  setlocale(LC_ALL, "C.UTF-8");
#endif
#ifdef CHANGES_THE_ENVIRONMENT
  setenv("ZOO", "1", 1);
#endif
#ifdef CHANGES_THE_DIRECTORY
  if (chdir("/") != 0) return HEARTH_E_PLUGIN;
#endif
#ifdef CHANGES_THE_UMASK
  umask(0111);
#endif
#ifdef SETS_AN_ALARM
  alarm(3600);
#endif
#ifdef LOWERS_A_LIMIT
  const struct rlimit few = {64, 64};
  if (setrlimit(RLIMIT_NOFILE, &few) != 0) return HEARTH_E_PLUGIN;
#endif
#ifdef CHANGES_THINGS_WHEN_SERVED
  if (is_served()) {
    umask(0);
    if (chdir("/") != 0) return HEARTH_E_PLUGIN;
  }
#endif
#ifdef LEAVES_A_DESCRIPTOR
  if (open("/dev/null", O_RDONLY) < 0) return HEARTH_E_PLUGIN;
#endif
#ifdef LEAVES_A_KEY
  pthread_key_t key;
  pthread_key_create(&key, free_key);
#endif
#ifdef LEAKS_LOADS
  memset(malloc(8192), 1, 8192);
#endif
  if (sql == 0) return HEARTH_E_UNSUPPORTED;
#ifdef JOINS_ITS_THREAD
  stop = 0;
  if (pthread_create(&helper, 0, help, 0) != 0) return HEARTH_E_NOMEM;
#endif
  return HEARTH_OK;
}

static hearth_status deinit(void) {
#ifdef JOINS_ITS_THREAD
  stop = 1;
  pthread_join(helper, 0);
#endif
#ifdef CRASHES_IN_DEINIT
  crash();
#endif
#ifdef HANGS_IN_DEINIT
  hang();
#endif
  return HEARTH_OK;
}

static const hearth_class* get_class(uint32_t index) {
#ifdef CRASHES_IN_GET_CLASS
  crash();
#endif
#ifdef HANGS_IN_GET_CLASS
  hang();
#endif
#ifdef LARGE_INDEX
  if (index > 1000) return &zoo_class;
#endif
#ifdef TWO_CLASSES
  if (index == 1) return &second_class;
#endif
  return index == 0 ? &zoo_class : 0;
}

HEARTH_EXPORT const hearth_plugin hearth_plugin_v1 = {.magic = HEARTH_MAGIC,
                                                      .struct_size = sizeof(hearth_plugin),
                                                      .abi_major = HEARTH_ABI_MAJOR,
                                                      .abi_minor = HEARTH_ABI_MINOR,
#if defined(CALLS_FROM_A_THREAD) || defined(JOINS_ITS_THREAD) || defined(CRASHES_ON_ITS_THREAD) || \
    defined(ABORTS_ON_ITS_THREAD)
                                                      .flags = HEARTH_PLUGIN_THREADS,
#endif
                                                      .class_count = CLASS_COUNT,
                                                      .init = init,
                                                      .deinit = deinit,
                                                      .get_class = get_class};

HEARTH_PLUGIN_NOTE("{\"plugin\":\"zoo\",\"version\":\"1.0.0\",\"classes\":[" CLASS_NAMES
                   "],"
                   "\"extensions\":[\"hearth.sql/1\"]}");
