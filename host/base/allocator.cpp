#include "base/allocator.hpp"

#include <cstdint>

#include <malloc.h>

// jemalloc's, in programs that are linked with it.
extern "C" [[gnu::weak]] int mallctl(const char* name, void* old_value, std::size_t* old_size,
                                     void* new_value, std::size_t new_size);

namespace hearth {

std::size_t allocated_bytes() {
  if (mallctl != nullptr) {
    std::uint64_t epoch = 1;
    std::size_t bytes = 0;
    std::size_t size = sizeof(bytes);
    mallctl("thread.tcache.flush", nullptr, nullptr, nullptr, 0);
    mallctl("epoch", nullptr, nullptr, &epoch, sizeof(epoch));  // brings the statistics up to date
    mallctl("stats.allocated", &bytes, &size, nullptr, 0);
    return bytes;
  }
  const auto all = ::mallinfo2();
  return all.uordblks + all.hblkhd;
}

void give_back_memory_in_background() {
  bool on = true;
  if (mallctl != nullptr) mallctl("background_thread", nullptr, nullptr, &on, sizeof(on));
}

}  // namespace hearth
