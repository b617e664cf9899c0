#pragma once
// The process's malloc. The program `hearth` is linked with jemalloc, which is used here if it is
// there; tests and sanitizers have another one.

#include <cstddef>

namespace hearth {

// Bytes that are allocated and not freed; 0 if the allocator does not say. With jemalloc the
// calling thread's cache is emptied first. Any thread.
[[nodiscard]] std::size_t allocated_bytes();

// From now on a thread of jemalloc's gives free memory back to the system, after the time that
// main.cpp sets, also while nothing allocates. Not for a process that counts its threads. Any
// thread.
void give_back_memory_in_background();

}  // namespace hearth
