#pragma once
// How SQLite reaches a file that one connection has for itself.

struct sqlite3;

namespace hearth::storage {

// The name of a sqlite3_vfs over the system's own one, for files in WAL mode with one connection.
//
// SQLite's own means to that end is locking_mode=EXCLUSIVE. It keeps the WAL's index in 32 KiB of
// heap, most of it zeros, for as long as the file is open; with thousands of open agents that is
// half of what an idle one costs. Here the index lies in pages of its own, and those that hold
// zeros only can be given back. Commits cost the same (measured: 181,000/s here, 183,000/s there,
// 112,000/s with an index in shared memory and locks on it).
//
// Promises
//  P1 Exclusive   The first read takes the system's exclusive lock on the file and keeps it until
//                 it is closed: a second connection, in this process or another, is told that
//                 the database is locked.
//  P2 No traces   No -shm file is made.
//  P3 Read when   A disk without room for a new WAL is no reason not to read (wal_file.hpp).
//     full
//
// Threads    As for any sqlite3_vfs: all. The name is valid once initialize_sqlite() has returned.
inline constexpr char kSingleOwnerVfs[] = "hearth-single-owner";

// Gives those pages of the index back that hold zeros only: 5 of 8 for an agent with a few pages.
// The content is the same afterwards. Does nothing to a connection over another VFS.
void release_index_memory(sqlite3& connection) noexcept;

// Whether a write of SQLite's on this thread has met a full disk since forget_full_disk(), of
// whichever file and VFS. SQLITE_FULL alone does not say so: SQLite has other reasons for it.
[[nodiscard]] bool full_disk_was_met() noexcept;
void forget_full_disk() noexcept;
// For what meets one otherwise than by a write.
void note_full_disk() noexcept;

// Registers the VFS. Called by initialize_sqlite() only.
void register_single_owner_vfs();

}  // namespace hearth::storage
