#pragma once
// The WAL of a database that only one connection uses.

struct sqlite3_file;  // NOLINT(readability-identifier-naming): SQLite's name
struct sqlite3_vfs;   // NOLINT(readability-identifier-naming): SQLite's name

namespace hearth::storage {

// The size of this file object without the system's own.
inline constexpr int kWalFileBytes = 96;

// Opens a WAL as the system's VFS does, with two differences:
//
//   No room   If the disk has no room for a new file, the WAL counts as empty, so that the database
//             can be read. The first write makes the file, or fails with SQLITE_FULL.
//   Frames    SQLite writes the header of a frame, 24 bytes, and then its page. A header at the end
//             of the last write waits for its page, and one call writes both: half the system calls
//             of a commit. Any other call writes a waiting header first.
//
// Requires   Only one connection uses the database. `file` has szOsFile of `system` plus
//            kWalFileBytes bytes; `name` outlives the open file.
// Threads    As for xOpen of any VFS.
[[nodiscard]] int open_wal(sqlite3_vfs* system, const char* name, sqlite3_file* file, int flags,
                           int* flags_out);

}  // namespace hearth::storage
