// The tests run servers in this process, whose loader starts this program again as a probe.

#include "plugins/admission/probe.hpp"
#include "plugins/generation/probe_child.hpp"

#include <gtest/gtest.h>

#include <cstring>

int main(int argc, char** argv) {
  if (argc == 3 && std::strcmp(argv[1], hearth::plugins::kProbeArgument) == 0) {
    return hearth::plugins::run_plugin_probe(argv[2]);
  }
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
