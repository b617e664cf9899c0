#include "cli/commands.hpp"
#include "plugins/admission/probe.hpp"
#include "plugins/check/check_child.hpp"
#include "plugins/generation/probe_child.hpp"

#include <cstdio>
#include <cstring>
#include <exception>
#include <variant>

#include <signal.h>

// jemalloc reads this when the process starts. Memory that is free for a second goes back to the
// system: agents come and go in waves. glibc's malloc kept as much again as 1,000 streams use.
extern "C" {
// NOLINTNEXTLINE(readability-identifier-naming): jemalloc's
[[gnu::visibility("default")]] extern const char* const malloc_conf;
const char* const malloc_conf = "dirty_decay_ms:1000,muzzy_decay_ms:0";
}

int main(int argc, char** argv) {
  // Comes first: a probe runs a library, and needs a process that has done nothing yet.
  if (argc == 3 && std::strcmp(argv[1], hearth::plugins::kProbeArgument) == 0) {
    return hearth::plugins::run_plugin_probe(argv[2]);
  }
  if (argc == 4 && std::strcmp(argv[1], hearth::plugins::kCheckArgument) == 0) {
    return hearth::plugins::run_plugin_check(argv[2], argv[3]);
  }
  // The parent may ignore SIGCHLD, and this process inherits that. It could then not learn how its
  // own children end.
  ::signal(SIGCHLD, SIG_DFL);
  try {
    return std::visit(
        [](const auto& command) {
          if constexpr (requires { answer(command); }) {
            return hearth::cli::run(answer(command));
          } else {
            return hearth::cli::run(command);
          }
        },
        hearth::cli::parse_command_line(argc, argv));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "hearth: %s\n", error.what());
    return hearth::kExitFailed;
  }
}
