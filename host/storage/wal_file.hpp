#pragma once
// The WAL of a database that one connection has for itself.

struct sqlite3_file;  // NOLINT(readability-identifier-naming): SQLite's name
struct sqlite3_vfs;   // NOLINT(readability-identifier-naming): SQLite's name

namespace hearth::storage {

// So many bytes behind what the system's files take.
inline constexpr int kWalFileBytes = 96;

// Opens a WAL as the system's VFS does, but for two things:
//
//   No room   Where there is no room for a new file, the WAL counts as one without content, so that
//             the database can be read: the first write makes the file, or fails with SQLITE_FULL.
//   Frames    SQLite writes the header of a frame, 24 bytes, and then its page. A header that
//             follows what was written last waits for its page, and both are one write: half the
//             system calls of a commit. Whatever comes instead of the page comes after the header.
//
// Requires   One connection has the database. `file` has szOsFile of `system` and kWalFileBytes;
//            `name` outlives the open file.
// Threads    As for xOpen of any VFS.
[[nodiscard]] int open_wal(sqlite3_vfs* system, const char* name, sqlite3_file* file, int flags,
                           int* flags_out);

}  // namespace hearth::storage
