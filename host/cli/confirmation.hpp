#pragma once
// Asks the person at the terminal before a step that cannot be undone.

#include <string_view>

namespace hearth::cli {

enum class Confirmation {
  kYes,
  kNo,      // anything but `y` or `yes`, the end of the input included
  kNobody,  // there is no terminal to ask at
};

// Writes the question to `out` and reads a line from `in`.
//   Threads   Blocks until the person has answered.
[[nodiscard]] Confirmation ask_person(std::string_view question, int in, int out);

}  // namespace hearth::cli
