#pragma once
// What a library may change in the process that loads it.

#include "plugins/admission/process_guard.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace hearth::plugins {

// The state at one moment. A value; it holds nothing open.
struct ProcessState {
  // `threads`: how many there should be. If there are more, it waits a moment for them to end.
  //   Threads  The first thread of the process, while no other thread changes the state.
  [[nodiscard]] static ProcessState take(std::size_t threads = SIZE_MAX);

  std::size_t threads = 0;
  std::size_t children = 0;
  ProcessSettings settings;
  std::map<int, std::string> descriptors;  // number -> what it is
  unsigned next_key = 0;                   // the number that pthread_key_create would give
};

// What is different. Each text is the end of a sentence: "a thread runs that did not".
// `allow_threads`: ignores threads.
[[nodiscard]] std::vector<std::string> differences(const ProcessState& before,
                                                   const ProcessState& after, bool allow_threads);

// The number of threads of this process. A joined thread may count for a moment.
[[nodiscard]] std::size_t count_threads();

}  // namespace hearth::plugins
