#pragma once
// What each command does: answer() returns what it prints, run() prints it and returns the exit
// status.

#include "cli/command_line.hpp"

#include <filesystem>
#include <optional>
#include <string>

namespace hearth::storage {
struct AgentKey;
class DataDirectory;
}  // namespace hearth::storage

namespace hearth::cli {

// hearth serve: runs the server until a signal stops it, or only checks its configuration.
//   Threads  The main thread, before other threads exist: it takes the signals (stop_signals.hpp).
[[nodiscard]] int run(const ServeCommand& command);

// hearth dev: builds the project in the current directory, serves it, and builds it again whenever
// a source is saved, until SIGTERM or SIGINT. The status is the server's, or kExitBadUsage if this
// is no project.
//
//   Promises  If the project does not compile or link, the output of the tools is printed, and the
//             libraries of the last good build are still served (project_build.hpp). Without one,
//             the server waits for the first library. If a library crashes the server, the server
//             is restarted (supervisor.hpp). A source that is saved during a build is built after
//             it.
[[nodiscard]] int run(const DevCommand& command);

// hearth config: every setting with the value that `hearth serve` with the same flags would use,
// and the source of the value. Reads only the configuration files: no token, no data directory, no
// server. Leaves out the values of `options`, which may be secret.
//   Failure   kExitBadUsage: mistakes in the files, each with its line, as --check-config prints.
[[nodiscard]] Answer answer(const ConfigCommand& command);

// hearth new: writes a project (new_project.hpp), and says the next steps.
//   Promises  Changes nothing that exists: the directory must be absent or empty.
//   Failure   kExitBadUsage: a wrong name, or a directory in use. kExitFailed: the disk refuses;
//             files that were written stay.
[[nodiscard]] Answer answer(const NewCommand& command);

// hearth check: prints the report to stdout while it checks.
//   Failure   kExitFailed: the library does not keep the contract. kExitBadUsage: not tried: no
//             such file, an unknown id, no place for the record.
[[nodiscard]] int run(const CheckCommand& command);

// Commands that ask a running server. The output is a table, or with --json the server's answer.
// Without --yes, destroy first asks the person at the terminal.
//   Failure   kExitFailed: no server runs, or the server or the person refuses; for a reload also
//             if a file was refused, with the reason. kExitBadUsage: a mistake in the configuration
//             file.
[[nodiscard]] int run(const AdminCommand& command);

// hearth audit: prints the last entries. With `follow` also prints new entries, until a signal ends
// the process or the server does not answer any more.
//   Failure   kExitFailed: no server runs there, or it refuses.
[[nodiscard]] int run(const AuditCommand& command);

// hearth tail: returns when the server refuses, or does not run at the start.
[[nodiscard]] int run(const TailCommand& command);

// hearth quarantine. `list`: a line for each class in quarantine, oldest first. `release`: the
// class is served again. A running server does so at once, and tries its library.
//
// Asks the server that runs on the data directory. Without one it works on the directory itself,
// and holds its lock meanwhile.
//   Failure   kExitFailed: the class is not in quarantine, or the server refuses a library of it
//             (the class is released anyway), or neither the server nor the directory can be used.
//             kExitBadUsage: a mistake in the configuration file.
[[nodiscard]] Answer answer(const QuarantineCommand& command);

// hearth repair: repairs the directory of agents (runtime/repair.hpp), and prints a line for each
// agent concerned.
//   Failure  kExitFailed: a server runs on the data directory, or a file cannot be read or written,
//            or an agent's file is still missing or damaged. kExitBadUsage: a mistake in the
//            configuration file.
[[nodiscard]] Answer answer(const RepairCommand& command);

// hearth backup, restore, verify (backup_command.hpp).
[[nodiscard]] int run(const BackupCommand& command);

// ---- for several commands -----------------------------------------------------------------------

// Prints the answer, and returns its status.
int run(const Answer& answer);

// The status of a command that has printed its answer to stdout; kExitFailed, and says so, if that
// could not be written.
[[nodiscard]] int printed_status(int status);

// As answer(RepairCommand), for a data directory that is held. `restored`: an agent that is not
// being destroyed any more, or null. Also StorageError.
[[nodiscard]] Answer repaired(const storage::DataDirectory& held, bool forget_missing,
                              const storage::AgentKey* restored);

// The data directory that the flags mean. It exists, if it must.
//   Failure  `mistake`, the command's answer: a mistake in the server file, or there is no such
//            directory.
struct FoundData {
  std::filesystem::path data;
  std::optional<Answer> mistake;
};
[[nodiscard]] FoundData find_data(const DataFlags& flags, bool must_exist = true);

// Why a command must not write to a data directory: it belongs to another user, whose server could
// not use what root makes there. Nothing if it may. The directory need not exist.
[[nodiscard]] std::optional<std::string> data_of_another_user(const std::filesystem::path& data);

// The answer of a command that failed.
[[nodiscard]] Answer failed_answer(const std::string& why);

}  // namespace hearth::cli
