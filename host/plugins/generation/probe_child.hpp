#pragma once
// The child's part of admission/probe.hpp.

namespace hearth::plugins {

// Runs the child and returns its exit status: 0 also for a refusal. Without descriptor 3 the
// verdict goes to standard output, for an operator who starts it by hand.
[[nodiscard]] int run_plugin_probe(const char* library);

}  // namespace hearth::plugins
