/*
 * An agent in plain C, with only abi.h: the tasks of every binding to another language.
 *
 *   frames    come back as they came
 *   methods   reverse(text) -> the text backwards
 *   state     {"echoed": n}
 */
#include <hearth/abi.h>
#include <hearth/ext/connections.h>
#include <hearth/ext/state.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The host's tables, looked up once in init and constant after that. */
static const hearth_connections_v1* connections;
static const hearth_state_v1* state;

/* One agent. In memory from create to destroy; data that must survive that is in its state. */
typedef struct echo {
  const hearth_host* host;
  hearth_agent agent;
} echo;

static hearth_bytes text(const char* s) {
  return (hearth_bytes){s, strlen(s)};
}

/* Reads n from {"echoed":n}. Clients may write any state; an unknown form counts as 0. */
static unsigned long echoed(const echo* self) {
  hearth_bytes json = {NULL, 0};
  char copy[64]; /* lent bytes have no final NUL and are valid only for a moment */
  if (state->get(self->host, self->agent, &json) != HEARTH_OK || json.len >= sizeof copy) return 0;
  memcpy(copy, json.ptr, json.len);
  copy[json.len] = 0;
  return strncmp(copy, "{\"echoed\":", 10) == 0 ? strtoul(copy + 10, NULL, 10) : 0;
}

static hearth_status complete(const echo* self, const hearth_event* event, hearth_status status,
                              hearth_bytes body) {
  self->host->complete(self->host, self->agent, event->call, status, body);
  return HEARTH_OK; /* the event was accepted, whatever its outcome */
}

static hearth_status on_message(const echo* self, const hearth_event* event) {
  char json[64];
  snprintf(json, sizeof json, "{\"echoed\":%lu}", echoed(self) + 1);
  state->set(self->host, self->agent, 0, text(json));
  connections->send(self->host, self->agent, event->connection, event->flags, event->body);
  return complete(self, event, HEARTH_OK, text(""));
}

/* Arguments are a JSON array. A real plugin has a JSON library; this takes only ["plain text"]. */
static hearth_status reverse(const echo* self, const hearth_event* event) {
  const char* in = event->body.ptr;
  const size_t len = event->body.len;
  char* out = malloc(len + 1);
  int good =
      out && len >= 4 && in[0] == '[' && in[1] == '"' && in[len - 2] == '"' && in[len - 1] == ']';
  for (size_t i = 2; good && i < len - 2; ++i)
    good = in[i] >= ' ' && in[i] <= '~' && in[i] != '"' && in[i] != '\\';
  for (size_t i = 1; good && i < len - 1; ++i) out[i - 1] = in[len - 1 - i]; /* the quotes too */
  if (good)
    complete(self, event, HEARTH_OK, (hearth_bytes){out, len - 2});
  else
    complete(self, event, HEARTH_E_INVALID, text("reverse takes one string of plain ASCII"));
  free(out); /* the host has copied it */
  return HEARTH_OK;
}

static hearth_status on_call(const echo* self, const hearth_event* event) {
  const hearth_bytes name = event->name;
  char problem[128];
  if (name.len == 7 && memcmp(name.ptr, "reverse", 7) == 0) return reverse(self, event);
  snprintf(problem, sizeof problem, "Method %.*s does not exist",
           name.len > 64 ? 64 : (int)name.len, (const char*)name.ptr);
  return complete(self, event, HEARTH_E_NOT_FOUND, text(problem));
}

/* Accepting an event (HEARTH_OK) is a promise to complete it exactly once. */
static hearth_status on_event(void* instance, const hearth_event* event) {
  switch (event->kind) {
    case HEARTH_EVENT_MESSAGE: return on_message(instance, event);
    case HEARTH_EVENT_CALL: return on_call(instance, event);
    case HEARTH_EVENT_START:
    case HEARTH_EVENT_CONNECT:
    case HEARTH_EVENT_CLOSE: return complete(instance, event, HEARTH_OK, text(""));
    default: return HEARTH_E_UNSUPPORTED; /* also events of later versions */
  }
}

static hearth_status create(const hearth_class* self, const hearth_host* host, hearth_agent agent,
                            hearth_bytes name, hearth_bytes options, void** instance) {
  echo* made = malloc(sizeof *made);
  (void)self, (void)name, (void)options;
  if (made == NULL) return HEARTH_E_NOMEM;
  *made = (echo){host, agent};
  *instance = made;
  state->set_default(host, agent, text("{\"echoed\":0}"));
  return HEARTH_OK;
}

static void destroy(void* instance) {
  free(instance);
}
/* Nothing ever waits, so no event is cancelled and no result comes. */
static void on_cancel(void* instance, uint64_t call) {
  (void)instance, (void)call;
}
static void on_result(void* instance, const hearth_result* result) {
  (void)instance, (void)result;
}

static const hearth_class echo_class = {.struct_size = sizeof(hearth_class),
                                        .name = "EchoC",
                                        .version = "1.0.0",
                                        .create = create,
                                        .destroy = destroy,
                                        .on_event = on_event,
                                        .on_cancel = on_cancel,
                                        .on_result = on_result};

static hearth_status init(const hearth_host* host, hearth_bytes config) {
  (void)config;
  connections = host->get_extension(host, HEARTH_EXT_CONNECTIONS);
  state = host->get_extension(host, HEARTH_EXT_STATE);
  return connections != NULL && state != NULL ? HEARTH_OK : HEARTH_E_UNSUPPORTED;
}

static hearth_status deinit(void) {
  return HEARTH_OK;
}
static const hearth_class* get_class(uint32_t index) {
  return index == 0 ? &echo_class : NULL;
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
    "{\"plugin\":\"echo-c\",\"version\":\"1.0.0\",\"classes\":[\"EchoC\"],"
    "\"extensions\":[\"hearth.connections/1\",\"hearth.state/1\"]}");
