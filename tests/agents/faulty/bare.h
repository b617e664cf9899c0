/* A class in C that answers nothing, for libraries that are wrong in one way each. */
#ifndef HEARTH_TESTS_BARE_H
#define HEARTH_TESTS_BARE_H

#include <hearth/abi.h>

#define UNUSED __attribute__((unused))

static UNUSED hearth_status bare_create(const hearth_class* self, const hearth_host* host,
                                        hearth_agent agent, hearth_bytes name, hearth_bytes options,
                                        void** instance) {
  (void)self, (void)host, (void)agent, (void)name, (void)options;
  *instance = NULL;
  return HEARTH_OK;
}
static UNUSED void bare_destroy(void* instance) {
  (void)instance;
}
static UNUSED hearth_status bare_on_event(void* instance, const hearth_event* event) {
  (void)instance, (void)event;
  return HEARTH_E_UNSUPPORTED;
}
static UNUSED void bare_on_cancel(void* instance, uint64_t call) {
  (void)instance, (void)call;
}
static UNUSED void bare_on_result(void* instance, const hearth_result* result) {
  (void)instance, (void)result;
}
static UNUSED hearth_status bare_init(const hearth_host* host, hearth_bytes config) {
  (void)host, (void)config;
  return HEARTH_OK;
}
static UNUSED hearth_status bare_deinit(void) {
  return HEARTH_OK;
}

#define BARE_CLASS(class_name)                                                  \
  static const hearth_class bare_class = {sizeof(hearth_class), 0,              \
                                          class_name,           "1.0.0",        \
                                          bare_create,          bare_destroy,   \
                                          bare_on_event,        bare_on_cancel, \
                                          bare_on_result,       NULL};          \
  static const hearth_class* bare_get_class(uint32_t index) {                   \
    return index == 0 ? &bare_class : NULL;                                     \
  }

#endif /* HEARTH_TESTS_BARE_H */
