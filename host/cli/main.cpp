#include "cli/admin_command.hpp"
#include "cli/audit_command.hpp"
#include "cli/backup_command.hpp"
#include "cli/check_command.hpp"
#include "cli/command_line.hpp"
#include "cli/config_command.hpp"
#include "cli/dev_command.hpp"
#include "cli/new_project.hpp"
#include "cli/quarantine_command.hpp"
#include "cli/repair_command.hpp"
#include "cli/serve.hpp"
#include "cli/tail_command.hpp"
#include "plugins/admission/probe.hpp"
#include "plugins/check/check_child.hpp"
#include "plugins/generation/probe_child.hpp"

#include <cstdio>
#include <cstring>
#include <exception>
#include <variant>

#include <signal.h>

namespace hearth::cli {
namespace {

int run(const Answer& answer) {
  std::fputs(answer.text.c_str(), answer.status == kExitClean ? stdout : stderr);
  return answer.status;
}

int run(const ServeCommand& command) {
  return serve(command);
}

int run(const DevCommand& command) {
  return develop(command);
}

int run(const ConfigCommand& command) {
  return run(answer(command));
}

int run(const CheckCommand& command) {
  return check(command);
}

int run(const NewCommand& command) {
  return run(make_project(command));
}

int run(const AdminCommand& command) {
  const AdminOutput output = ask_server(command);
  std::fputs(output.out.c_str(), stdout);
  std::fputs(output.err.c_str(), stderr);
  return output.status;
}

int run(const AuditCommand& command) {
  return show_audit(command);
}

int run(const TailCommand& command) {
  return tail(command);
}

int run(const QuarantineCommand& command) {
  return run(answer(command));
}

int run(const RepairCommand& command) {
  return run(answer(command));
}

int run(const BackupCommand& command) {
  if (command.what == BackupCommand::What::kBackup) return back_up(command);
  return run(command.what == BackupCommand::What::kRestore ? restore(command) : verify(command));
}

}  // namespace
}  // namespace hearth::cli

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
    return std::visit([](const auto& command) { return hearth::cli::run(command); },
                      hearth::cli::parse_command_line(argc, argv));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "hearth: %s\n", error.what());
    return hearth::kExitFailed;
  }
}
