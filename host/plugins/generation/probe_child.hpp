#pragma once
// The child's side of admission/probe.hpp.

namespace hearth::plugins {

// The child's whole life: returns its exit status, 0 also for a refusal. With no descriptor 3 the
// verdict goes to standard output, for a person who tries it by hand.
[[nodiscard]] int run_plugin_probe(const char* library);

}  // namespace hearth::plugins
