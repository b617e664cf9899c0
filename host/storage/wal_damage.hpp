#pragma once
// What SQLite does not report of a write-ahead log: damage, and how much of it counts.

#include <filesystem>
#include <string>

namespace hearth::storage {

// What is wrong with the WAL of `database`, as the end of a sentence for an operator. Empty:
// nothing is, or there is no WAL. SQLite reads a WAL up to the first frame with a wrong checksum,
// and ignores the rest in silence.
//
// Found      A damaged header; a frame that is damaged although a later commit was written.
// Not found  Damage to the last commit, which looks like a commit that the end of its process has
//            cut off.
// Requires   No connection to the database is open.
// Bounded    Holds one page. Reads the file once, on the calling thread.
[[nodiscard]] std::string damage_of_wal(const std::filesystem::path& database);

// How many pages of the WAL of an agent's database have commits. Behind them may be what an earlier
// use of the file, a transaction in progress, or one that was rolled back has left.
//
// Bounded    As above.
// Failure    StorageError.
[[nodiscard]] int pages_with_commits(const std::filesystem::path& database);

}  // namespace hearth::storage
