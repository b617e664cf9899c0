#pragma once
// The WAL of a database whose disk has no room to make it.

struct sqlite3_file;
struct sqlite3_vfs;

namespace hearth::storage {

// So many bytes behind what the system's files take.
inline constexpr int kLateWalBytes = 64;

// Opens a WAL as the system's VFS does. Where that fails because there is no room for a new file,
// the WAL counts as one without content, so that the database can be read: the first write makes
// the file, or fails with SQLITE_FULL.
//
// Requires   One connection has the database. `file` has szOsFile of `system` and kLateWalBytes;
//            `name` outlives the open file.
// Threads    As for xOpen of any VFS.
[[nodiscard]] int open_wal(sqlite3_vfs* system, const char* name, sqlite3_file* file, int flags,
                           int* flags_out);

}  // namespace hearth::storage
