// What only C++ can do wrong. By definitions: throws out of on_event(), or has a thread-local
// object with a destructor.

#include <hearth/abi.h>

#include <new>
#include <stdexcept>
#include <string>

namespace {

const hearth_host* host;

struct Agent {
  hearth_agent handle;
};

#ifdef THREAD_LOCAL_DESTRUCTOR
thread_local std::string scratch;
#endif

hearth_status create(const hearth_class*, const hearth_host*, hearth_agent agent, hearth_bytes,
                     hearth_bytes, void** instance) {
  *instance = new (std::nothrow) Agent{agent};
  return *instance != nullptr ? HEARTH_OK : HEARTH_E_NOMEM;
}

void destroy(void* instance) {
  delete static_cast<Agent*>(instance);
}

hearth_status on_event(void* instance, const hearth_event* event) {
#ifdef THROWS_IN_EVENT
  if (event->kind == HEARTH_EVENT_MESSAGE) throw std::runtime_error("no message for me");
#endif
#ifdef THREAD_LOCAL_DESTRUCTOR
  scratch.assign(1000, 's');
#endif
  switch (event->kind) {
    case HEARTH_EVENT_START:
    case HEARTH_EVENT_CONNECT:
    case HEARTH_EVENT_MESSAGE:
    case HEARTH_EVENT_CLOSE:
      host->complete(host, static_cast<Agent*>(instance)->handle, event->call, HEARTH_OK, {});
      return HEARTH_OK;
    default: return HEARTH_E_UNSUPPORTED;
  }
}

void on_cancel(void*, uint64_t) {}
void on_result(void*, const hearth_result*) {}

constexpr hearth_class kZoo = {.struct_size = sizeof(hearth_class),
                               .flags = 0,
                               .name = "ZooCpp",
                               .version = "1.0.0",
                               .create = create,
                               .destroy = destroy,
                               .on_event = on_event,
                               .on_cancel = on_cancel,
                               .on_result = on_result,
                               .get_extension = nullptr};

hearth_status init(const hearth_host* given, hearth_bytes) {
  host = given;
  return HEARTH_OK;
}
hearth_status deinit() {
  return HEARTH_OK;
}
const hearth_class* get_class(uint32_t index) {
  return index == 0 ? &kZoo : nullptr;
}

}  // namespace

HEARTH_EXPORT const hearth_plugin hearth_plugin_v1 = {.magic = HEARTH_MAGIC,
                                                      .struct_size = sizeof(hearth_plugin),
                                                      .abi_major = HEARTH_ABI_MAJOR,
                                                      .abi_minor = HEARTH_ABI_MINOR,
                                                      .flags = 0,
                                                      .class_count = 1,
                                                      .init = init,
                                                      .deinit = deinit,
                                                      .get_class = get_class};

HEARTH_PLUGIN_NOTE(R"({"plugin":"zoo-cpp","version":"1.0.0","classes":["ZooCpp"]})");
