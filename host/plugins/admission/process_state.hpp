#pragma once
// What a library may have changed in the process that it was loaded into.

#include "plugins/admission/process_guard.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace hearth::plugins {

// A picture of it at one moment. Values; nothing is held open.
struct ProcessState {
  // `threads`: how many there should be; for a moment it is waited until there are no more.
  //   Threads  The process's first, while nobody else changes what is looked at.
  [[nodiscard]] static ProcessState take(std::size_t threads = SIZE_MAX);

  std::size_t threads = 0;
  std::size_t children = 0;
  ProcessSettings settings;
  std::map<int, std::string> descriptors;  // number -> what it is
  unsigned next_key = 0;                   // the number that pthread_key_create would give
};

// What is different, a sentence's end each: "a thread runs that did not". Threads are left out if
// `allow_threads`.
[[nodiscard]] std::vector<std::string> differences(const ProcessState& before,
                                                   const ProcessState& after, bool allow_threads);

// Threads of this process. One that was joined may be among them for a moment.
[[nodiscard]] std::size_t count_threads();

}  // namespace hearth::plugins
