// A plugin that changes settings of the process when it creates an agent, and restores them in its
// deinit(). With KEEPS_THEM it does not restore them. With FAILS_WHEN_SERVED its init() changes the
// locale and fails, but not in a trial.

#include <hearth/abi.h>

#include <sys/stat.h>

#include <exception>
#include <fstream>
#include <iterator>
#include <locale>
#include <new>
#include <string>

#include <signal.h>

HEARTH_PLUGIN_NOTE(R"({"plugin":"handlers","version":"1","classes":["Handlers"]})");

namespace {

class Comma : public std::numpunct<char> {
  [[nodiscard]] char do_decimal_point() const override { return ','; }
};

void on_signal(int) {}
void on_terminate() {
  __builtin_trap();
}
void on_new() {
  throw std::bad_alloc();
}

struct Kept {
  struct sigaction action;
  std::terminate_handler terminate;
  std::new_handler no_memory;
  std::locale locale;
  mode_t mask;
};
Kept* kept = nullptr;

void change_things() {
  if (kept != nullptr) return;
  kept = new Kept{.action = {},
                  .terminate = std::set_terminate(on_terminate),
                  .no_memory = std::set_new_handler(on_new),
                  .locale = std::locale::global(std::locale(std::locale(), new Comma)),
                  .mask = ::umask(0111)};
  struct sigaction ours{};
  ours.sa_handler = on_signal;
  ::sigaction(SIGUSR2, &ours, &kept->action);
}

void take_them_back() {
  if (kept == nullptr) return;
#ifndef KEEPS_THEM
  std::set_terminate(kept->terminate);
  std::set_new_handler(kept->no_memory);
  std::locale::global(kept->locale);
  ::umask(kept->mask);
  ::sigaction(SIGUSR2, &kept->action, nullptr);
#endif
  delete kept;
  kept = nullptr;
}

[[maybe_unused]] bool is_served() {
  std::ifstream file("/proc/self/cmdline");
  const std::string line{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  return line.find("--plugin-") == std::string::npos;
}

hearth_status create(const hearth_class*, const hearth_host*, hearth_agent, hearth_bytes,
                     hearth_bytes, void** instance) {
  static int one;
  *instance = &one;
  change_things();
  return HEARTH_OK;
}
void destroy(void*) {}
hearth_status on_event(void*, const hearth_event*) {
  return HEARTH_E_UNSUPPORTED;
}
void on_cancel(void*, uint64_t) {}
void on_result(void*, const hearth_result*) {}
const void* get_extension(const hearth_class*, const char*) {
  return nullptr;
}

constexpr hearth_class kHandlers = {
    .struct_size = sizeof(hearth_class),
    .flags = 0,
    .name = "Handlers",
    .version = "1",
    .create = create,
    .destroy = destroy,
    .on_event = on_event,
    .on_cancel = on_cancel,
    .on_result = on_result,
    .get_extension = get_extension,
};

hearth_status init(const hearth_host*, hearth_bytes) {
#ifdef FAILS_WHEN_SERVED
  if (is_served()) {
    std::locale::global(std::locale(std::locale(), new Comma));
    return HEARTH_E_FORBIDDEN;
  }
#endif
  return HEARTH_OK;
}
hearth_status deinit() {
  take_them_back();
  return HEARTH_OK;
}
const hearth_class* get_class(uint32_t index) {
  return index == 0 ? &kHandlers : nullptr;
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
