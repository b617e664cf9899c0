#include "plugins/admission/elf_surroundings.hpp"

#include "base/escape.hpp"
#include "plugins/admission/host_versions.hpp"

#include <elf.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace hearth::plugins {
namespace {

// The parts of the C and C++ run-time libraries: every system that runs Hearth has them.
constexpr std::array<std::string_view, 11> kEverywhere = {"libc.so.6",
                                                          "libm.so.6",
                                                          "libstdc++.so.6",
                                                          "libgcc_s.so.1",
                                                          "libpthread.so.0",
                                                          "libdl.so.2",
                                                          "librt.so.1",
                                                          "libatomic.so.1",
                                                          "ld-linux-x86-64.so.2",
                                                          "ld-linux-aarch64.so.1",
                                                          "libresolv.so.2"};

// Functions that end, copy or change the process, or settings that all its threads share. The
// process is the server's.
constexpr std::array<std::string_view, 28> kForTheServerOnly = {
    "exit",
    "_exit",
    "_Exit",
    "quick_exit",
    "fork",
    "vfork",
    "execl",
    "execle",
    "execlp",
    "execv",
    "execve",
    "execvp",
    "execvpe",
    "fexecve",
    "system",
    "popen",
    "dlopen",
    "dlmopen",
    "dlclose",
    "signal",
    "sigaction",
    "sigaltstack",
    "setlocale",
    "pthread_atfork",
    "__register_atfork",
    "__sysv_signal",
    "_ZSt13set_terminatePFvvE",     // std::set_terminate
    "_ZSt15set_new_handlerPFvvE"};  // std::set_new_handler

// Functions that register a call into the library for later, when it may be unloaded.
constexpr std::array<std::string_view, 9> kLeavesSomething = {
    "pthread_create",
    "thrd_create",
    "pthread_key_create",
    "tss_create",
    "__cxa_thread_atexit",
    "__cxa_thread_atexit_impl",
    "atexit",
    "_ZNSt6locale6globalERKS_",  // std::locale::global
    "_ZNSt6thread15_M_start_threadESt10unique_ptrINS_6_StateESt14default_deleteIS1_EEPFvvE"};

struct Sanitizer {
  std::string_view symbol;  // only a library compiled with it imports this
  std::string_view name;
  bool is_ours;
};

#if defined(__has_feature)
#define HEARTH_HAS_FEATURE(feature) __has_feature(feature)
#else
#define HEARTH_HAS_FEATURE(feature) 0
#endif
#if HEARTH_HAS_FEATURE(address_sanitizer) || defined(__SANITIZE_ADDRESS__)
constexpr bool kHasAsan = true;
#else
constexpr bool kHasAsan = false;
#endif
#if HEARTH_HAS_FEATURE(thread_sanitizer) || defined(__SANITIZE_THREAD__)
constexpr bool kHasTsan = true;
#else
constexpr bool kHasTsan = false;
#endif

constexpr std::array kSanitizers = {
    Sanitizer{"__asan_init", "address", kHasAsan}, Sanitizer{"__tsan_init", "thread", kHasTsan},
    Sanitizer{"__msan_init", "memory", false}, Sanitizer{"__hwasan_init", "hwaddress", false}};

template <std::size_t kSize>
bool stands_in(const std::array<std::string_view, kSize>& list, std::string_view name) {
  return std::ranges::find(list, name) != list.end();
}

// "fork", "exit" and 3 more
std::string enumerate(const std::vector<std::string_view>& names) {
  constexpr std::size_t kMaxNamed = 4;
  std::string text;
  const std::size_t named = std::min(names.size(), kMaxNamed);
  for (std::size_t index = 0; index < named; ++index) {
    if (index > 0) text += ", ";
    text += show_name(names[index]);
  }
  if (names.size() > named) text += " and " + std::to_string(names.size() - named) + " more";
  return text;
}

// The imports of `image` that are in `list`, each once.
template <std::size_t kSize>
std::vector<std::string_view> imports_in(const ElfImage& image,
                                         const std::array<std::string_view, kSize>& list) {
  std::vector<std::string_view> found;
  for (const std::string_view name : image.imports) {
    if (stands_in(list, name) && std::ranges::find(found, name) == found.end())
      found.push_back(name);
  }
  return found;
}

bool has_build_id(const ElfImage& image) {
  return std::ranges::any_of(image.notes, [](const ElfNote& note) {
    return note.owner == "GNU" && note.type == NT_GNU_BUILD_ID && !note.description.empty();
  });
}

}  // namespace

void check_surroundings(const ElfImage& image, std::vector<Finding>& findings) {
  const auto add = [&findings](std::string_view id, std::string reason) {
    findings.push_back(finding(id, std::move(reason)));
  };
  std::vector<std::string_view> others;
  for (const std::string_view name : image.needed) {
    if (!stands_in(kEverywhere, name)) others.push_back(name);
  }
  if (!others.empty()) {
    add("E10", "it needs " + enumerate(others) +
                   ", which a server may not have: link that in statically, or tell the server's "
                   "operator");
  }
  if (const auto names = imports_in(image, kForTheServerOnly); !names.empty()) {
    add("E11",
        "it imports " + enumerate(names) +
            ", which acts on the whole server: do without, or do it in a process of its own");
  }
  for (const ElfNeededVersion& needed : image.versions) {
    if (needed.is_weak) continue;
    if (version_standing(needed.library, needed.name) != VersionStanding::kMissing) continue;
    add("E12", "it needs " + show_name(needed.name) + " of " + show_name(needed.library) +
                   ", and this system's is older: build it on this system or an older one");
    break;
  }
  if (!has_build_id(image)) add("E13", "it has no build id: link it with -Wl,--build-id=sha1");
  if (image.has_static_tls) {
    add("E14",
        "it has thread-local storage of the static model, which runs out: compile it without "
        "-ftls-model=initial-exec");
  }
  if (!image.has_relro || !image.binds_now) {
    add("E15", "its tables stay writable: link it with -Wl,-z,relro -Wl,-z,now");
  }
  for (const Sanitizer& sanitizer : kSanitizers) {
    if (sanitizer.is_ours ||
        std::ranges::find(image.imports, sanitizer.symbol) == image.imports.end())
      continue;
    add("E16", "it is compiled with -fsanitize=" + std::string(sanitizer.name) +
                   ", and this program is not: build both with it, or neither");
  }
  if (const auto names = imports_in(image, kLeavesSomething); !names.empty()) {
    add("E17",
        "it imports " + enumerate(names) +
            ": threads, keys and handlers that outlive deinit() keep it from being unloaded, or "
            "crash the server; use hearth/ext/offload.h for what blocks");
  }
}

}  // namespace hearth::plugins
