// libFuzzer's way in. HEARTH_FUZZ names the target; tests/fuzz/run calls it.
#include "fuzz/targets.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  static const hearth::fuzz::Target* const target = [] {
    const char* const name = std::getenv("HEARTH_FUZZ");  // NOLINT(concurrency-mt-unsafe)
    const auto all = hearth::fuzz::targets();
    const auto found = std::ranges::find(all, std::string_view(name == nullptr ? "" : name),
                                         &hearth::fuzz::Target::name);
    if (found == all.end()) {
      std::fputs("HEARTH_FUZZ names none of the targets (tests/fuzz/targets.cpp)\n", stderr);
      std::exit(2);  // NOLINT(concurrency-mt-unsafe)
    }
    return &*found;
  }();
  target->run({reinterpret_cast<const char*>(bytes), size});
  return 0;
}
