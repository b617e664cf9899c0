#pragma once
// SQLite's access to a file that only one connection uses.

struct sqlite3;

namespace hearth::storage {

// The name of a sqlite3_vfs over the system's own one, for files in WAL mode with one connection.
//
// SQLite's own way is locking_mode=EXCLUSIVE. It keeps the WAL's index in 32 KiB of heap, mostly
// zeros, while the file is open: half of the memory of an idle agent. Here the index has its own
// pages, and pages with only zeros can be freed. Commits are as fast (measured: 181,000/s here,
// 183,000/s with EXCLUSIVE, 112,000/s with an index in shared memory and locks on it).
//
// Promises
//  P1 Exclusive   The first read takes the system's exclusive lock on the file until the file is
//                 closed: a second connection, in this process or another, gets SQLITE_BUSY.
//  P2 No traces   No -shm file is made.
//  P3 Read when   A database can be read even if the disk has no room for a new WAL (wal_file.hpp).
//     full
//
// Threads    All, as for any sqlite3_vfs. The name is valid after initialize_sqlite() has returned.
inline constexpr char kSingleOwnerVfs[] = "hearth-single-owner";

// Frees the pages of the index that hold only zeros: 5 of 8 for an agent with a few pages. The
// content does not change. Does nothing to a connection over another VFS.
void release_index_memory(sqlite3& connection) noexcept;

// Whether SQLite has met a full disk in a write on this thread since forget_full_disk(), with any
// file and VFS. SQLITE_FULL alone does not tell, because SQLite also uses it for other errors.
[[nodiscard]] bool full_disk_was_met() noexcept;
void forget_full_disk() noexcept;
// For code that meets a full disk in another way than by a write.
void note_full_disk() noexcept;

// Registers the VFS. Called by initialize_sqlite() only.
void register_single_owner_vfs();

}  // namespace hearth::storage
