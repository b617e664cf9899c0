#pragma once
// hearth backup, restore, verify

#include "cli/command_line.hpp"

namespace hearth::cli {

// hearth backup asks the running server for a backup (server/backups.hpp), and waits for its end.
// Prints the progress on stderr, and the backup's directory on stdout. The backup goes on in the
// server if this process ends.
//   Failure   kExitFailed: no server runs, or the backup failed.

// hearth restore: makes a data directory of a backup, or replaces one agent of a data directory by
// its copy. No server may run there.
//
// Promises
//  P1 Whole     The data directory, or the agent's file, is replaced at once when all of the new
//               one is on the device.
//  P2 Checked   Each file is what the manifest says, else nothing is restored.
//  P3 Agreed    An agent that is restored alone is repaired as by `hearth repair`.
//  P4 Kept      With --replace the old directory, or the agent's old file, stays beside the new;
//               otherwise nothing is replaced.
//   Failure   kExitFailed.  Threads  One. Blocks.
[[nodiscard]] Answer restore(const BackupCommand& command);

// hearth verify: compares each file of a backup with the manifest, and opens a copy of each
// database: its structure (integrity_check), its format, and whose it is. Says what would resume.
// The backup is only read. Works beside it, in a directory `.verifying-...`.
//   Failure   kExitFailed: something is damaged or missing, and is named; or there is no backup.
[[nodiscard]] Answer verify(const BackupCommand& command);

}  // namespace hearth::cli
