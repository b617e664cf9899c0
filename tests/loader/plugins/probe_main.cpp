// What main() of the server does first, alone: the child of a trial.

#include "loader/probe.hpp"

#include <string_view>

int main(int argc, char** argv) {
  if (argc != 3 || std::string_view(argv[1]) != hearth::loader::kProbeArgument) return 64;
  return hearth::loader::run_plugin_probe(argv[2]);
}
