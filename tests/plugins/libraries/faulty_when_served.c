/*
 * A plugin that passes its trial. In a server it does what the file `fault` of its working
 * directory says: crash or hang in its constructor, init(), get_class() or deinit(). Without that
 * file it is right there too.
 */
#include <hearth/abi.h>

#include <fcntl.h>
#include <unistd.h>

#include <stdlib.h>
#include <string.h>

static void read_text(const char* path, char* text, size_t size) {
  const int file = open(path, O_RDONLY);
  const ssize_t got = file < 0 ? 0 : read(file, text, size - 1);
  if (file >= 0) close(file);
  text[got < 0 ? 0 : got] = 0;
}

static int is_served(void) {
  char text[4096];
  memset(text, 0, sizeof text);
  const int file = open("/proc/self/cmdline", O_RDONLY);
  const ssize_t size = file < 0 ? 0 : read(file, text, sizeof text - 1);
  if (file >= 0) close(file);
  for (ssize_t at = 0; at < size; ++at) {
    if (strncmp(text + at, "--plugin-", 9) == 0) return 0;
  }
  return 1;
}

static void fail_in(const char* step) {
  char fault[64];
  if (!is_served()) return;
  read_text("fault", fault, sizeof fault);
  const char* const space = strchr(fault, ' ');
  if (space == 0 || strcmp(space + 1, step) != 0) return;
  if (strncmp(fault, "crash ", 6) == 0) {
    int* volatile nowhere = 0;
    *nowhere = 1;
  }
  volatile int for_ever = strncmp(fault, "hang ", 5) == 0;
  while (for_ever) {
  }
}

__attribute__((constructor)) static void begin(void) {
  fail_in("load");
}
__attribute__((destructor)) static void end(void) {
  fail_in("unload");
}

static const hearth_host* host;

static hearth_status create(const hearth_class* self, const hearth_host* the_host,
                            hearth_agent agent, hearth_bytes name, hearth_bytes options,
                            void** instance) {
  (void)self, (void)the_host, (void)name, (void)options;
  hearth_agent* made = malloc(sizeof *made);
  if (made == 0) return HEARTH_E_NOMEM;
  *made = agent;
  *instance = made;
  return HEARTH_OK;
}
static void destroy(void* instance) {
  free(instance);
}
static hearth_status on_event(void* instance, const hearth_event* event) {
  const hearth_bytes none = {0, 0};
  const hearth_bytes ok = {"ok", 2};
  const hearth_agent agent = *(hearth_agent*)instance;
  if (event->kind == HEARTH_EVENT_START)
    return host->complete(host, agent, event->call, HEARTH_OK, none);
  if (event->kind == HEARTH_EVENT_REQUEST)
    return host->complete(host, agent, event->call, HEARTH_OK, ok);
  return HEARTH_E_UNSUPPORTED;
}
static void on_cancel(void* instance, uint64_t call) {
  (void)instance, (void)call;
}
static void on_result(void* instance, const hearth_result* result) {
  (void)instance, (void)result;
}

static const hearth_class classes[] = {{.struct_size = sizeof(hearth_class),
                                        .name = "Faulty",
                                        .version = "1.0.0",
                                        .create = create,
                                        .destroy = destroy,
                                        .on_event = on_event,
                                        .on_cancel = on_cancel,
                                        .on_result = on_result},
                                       {.struct_size = sizeof(hearth_class),
                                        .name = "Bystander",
                                        .version = "1.0.0",
                                        .create = create,
                                        .destroy = destroy,
                                        .on_event = on_event,
                                        .on_cancel = on_cancel,
                                        .on_result = on_result}};

static hearth_status init(const hearth_host* the_host, hearth_bytes config) {
  (void)config;
  host = the_host;
  fail_in("init");
  return HEARTH_OK;
}
static hearth_status deinit(void) {
  fail_in("deinit");
  return HEARTH_OK;
}
static const hearth_class* get_class(uint32_t index) {
  fail_in("get_class");
  return index < 2 ? &classes[index] : 0;
}

HEARTH_EXPORT const hearth_plugin hearth_plugin_v1 = {.magic = HEARTH_MAGIC,
                                                      .struct_size = sizeof(hearth_plugin),
                                                      .abi_major = HEARTH_ABI_MAJOR,
                                                      .abi_minor = HEARTH_ABI_MINOR,
                                                      .class_count = 2,
                                                      .init = init,
                                                      .deinit = deinit,
                                                      .get_class = get_class};

HEARTH_PLUGIN_NOTE(
    "{\"plugin\":\"faulty\",\"version\":\"1.0.0\",\"classes\":[\"Faulty\",\"Bystander\"]}");
