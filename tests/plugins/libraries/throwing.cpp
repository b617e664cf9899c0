// A plugin in C++ without the SDK, which breaks the contract: it throws through the C interface.

#include <hearth/abi.h>

#include <stdexcept>

HEARTH_PLUGIN_NOTE(R"({"plugin":"throwing","version":"1","classes":["Throwing"]})");

namespace {

hearth_status create(const hearth_class*, const hearth_host*, hearth_agent, hearth_bytes name,
                     hearth_bytes, void** instance) {
  static int one;
  *instance = &one;
  if (name.len == 0) throw std::runtime_error("no name");
  return HEARTH_OK;
}
void destroy(void*) {
  throw 1;
}
hearth_status on_event(void*, const hearth_event*) {
  throw std::runtime_error("no event");
}
void on_cancel(void*, uint64_t) {
  throw 2;
}
void on_result(void*, const hearth_result*) {
  throw 3;
}
const void* get_extension(const hearth_class*, const char*) {
  throw 4;
}

constexpr hearth_class kThrowing = {
    .struct_size = sizeof(hearth_class),
    .flags = 0,
    .name = "Throwing",
    .version = "1",
    .create = create,
    .destroy = destroy,
    .on_event = on_event,
    .on_cancel = on_cancel,
    .on_result = on_result,
    .get_extension = get_extension,
};

hearth_status init(const hearth_host*, hearth_bytes) {
  return HEARTH_OK;
}
hearth_status deinit() {
  return HEARTH_OK;
}
const hearth_class* get_class(uint32_t index) {
  return index == 0 ? &kThrowing : nullptr;
}

}  // namespace

HEARTH_EXPORT const hearth_plugin hearth_plugin_v1 = {
    .magic = HEARTH_MAGIC,
    .struct_size = sizeof(hearth_plugin),
    .abi_major = HEARTH_ABI_MAJOR,
    .abi_minor = HEARTH_ABI_MINOR,
    .flags = 0,
    .class_count = 1,
    .init = init,
    .deinit = deinit,
    .get_class = get_class,
};
