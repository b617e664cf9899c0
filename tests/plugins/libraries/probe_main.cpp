// Only the first part of the server's main(): the child of a trial, or of one case of a check.

#include "plugins/admission/probe.hpp"
#include "plugins/check/check_child.hpp"
#include "plugins/generation/probe_child.hpp"

#include <string_view>

int main(int argc, char** argv) {
  using namespace hearth::plugins;
  const std::string_view wanted = argc > 1 ? argv[1] : "";
  if (argc == 3 && wanted == kProbeArgument) return run_plugin_probe(argv[2]);
  if (argc == 4 && wanted == kCheckArgument) return run_plugin_check(argv[2], argv[3]);
  return 64;
}
