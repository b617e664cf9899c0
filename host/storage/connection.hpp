#pragma once
// Opening a SQLite file the way all of Hearth's files are opened.

#include "base/error.hpp"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

struct sqlite3;

namespace hearth::storage {

// Sets the library up for the process: no mutexes around connections, no statistics (a global lock
// on each allocation), no page cache allocated ahead, no file names taken for URIs. The first
// Connection calls it; a program that uses SQLite on its own as well calls it first.
//
// Threads   Any; once is enough.
void initialize_sqlite();

struct ConnectionOptions {
  bool create = false;     // make an empty file if there is none
  std::string vfs{};       // name of a registered sqlite3_vfs; empty: the system's
  int cache_pages = 64;    // upper bound of SQLite's page cache; grows on demand
  bool exclusive = false;  // no other connection may read or write while this one lives
  std::chrono::milliseconds busy_timeout{0};  // how long to wait for other connections' locks
};

// Owns one sqlite3.
//
// Promises
//  P1 Hardened    DEFENSIVE on, trusted_schema off, extensions not loadable: what a file contains
//                 cannot call functions with side effects or damage the file's own structure.
//  P2 Frugal      No lookaside memory and no preallocated page cache: an idle connection costs what
//                 it uses.
//  P3 Correct     Foreign keys are enforced.
//
// Threads         One at a time: opened without a mutex.
// Lifetime        Every Statement on it is destroyed first (the destructor asserts it).
// Failure         StorageError, whose text names the file and what SQLite said.
class Connection {
 public:
  Connection(const std::filesystem::path& path, const ConnectionOptions& options);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  [[nodiscard]] sqlite3& handle() const noexcept { return *db_; }

  // Runs our own SQL text, any number of statements, ignoring rows.
  void execute(const char* sql);

  // The first column of the first row of our own SQL text; 0 if there is none.
  [[nodiscard]] std::int64_t query_integer(std::string_view sql);

 private:
  struct Close {
    void operator()(sqlite3* db) const noexcept;
  };
  std::unique_ptr<sqlite3, Close> db_;
};

// For a WAL that an earlier life of `database` has left, while nobody has it open: writes its bytes
// over themselves, so that the next sync brings all of them to the device. After a failed sync the
// system may take for written what is only in its memory; and what is not on the device must not be
// moved into the file. False: there is none, or it is empty. `vfs_name`: as in ConnectionOptions.
// Throws StorageError.
bool write_wal_again(const std::filesystem::path& database, const std::string& vfs_name);
// The same for the first page of the database itself.
void write_first_page_again(const std::filesystem::path& database, const std::string& vfs_name);

// Brings the WAL of an open database to the device; also that it is empty. False: the system
// refuses.
[[nodiscard]] bool sync_wal(sqlite3& connection);

// Makes the content of the WAL count for nothing, and keeps its blocks: what is written next goes
// over it, and the file system has no block to find and no new length to store. To be synced.
//
// Requires   All of it is in the database, and nothing reads: SQLITE_CHECKPOINT_RESTART has
//            succeeded, and nothing was asked of the connection since. SQLite begins at the WAL's
//            start then, header included. A commit that it put behind the old content all the same
//            would be lost, so look at wal_is_blank() after the next one.
[[nodiscard]] bool blank_wal(sqlite3& connection);

// Also when it cannot be read.
[[nodiscard]] bool wal_is_blank(sqlite3& connection);

// Whether the last call on the connection has failed because there is no room.
[[nodiscard]] bool is_full(sqlite3& connection);

// Throws StorageError, or the one of its kinds that fits: "<doing>: <SQLite's message> (<extended
// code>) in <file>".
[[noreturn]] void throw_storage_error(sqlite3& connection, std::string_view doing);

}  // namespace hearth::storage
