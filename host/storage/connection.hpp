#pragma once
// Opens a SQLite file with the options that all of Hearth's files have.

#include "base/error.hpp"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

struct sqlite3;

namespace hearth::storage {

// Configures SQLite for the process: no mutexes around connections, no statistics (a global lock on
// each allocation), no preallocated page cache, no URIs as file names. The first Connection calls
// it. A program that also uses SQLite directly must call it first.
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
//  P1 Hardened    DEFENSIVE on, trusted_schema off, extensions not loadable: the content of a file
//                 cannot call functions with side effects or damage the file's own structure.
//  P2 Frugal      No lookaside memory and no preallocated page cache: an idle connection holds only
//                 the memory that it uses.
//  P3 Correct     Foreign keys are enforced.
//
// Threads         One at a time: opened without a mutex.
// Lifetime        Every Statement on it is destroyed first (the destructor asserts it).
// Failure         StorageError, whose text has the file and SQLite's message.
class Connection {
 public:
  Connection(const std::filesystem::path& path, const ConnectionOptions& options);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  [[nodiscard]] sqlite3& handle() const noexcept { return *db_; }

  // Runs the host's own SQL text, any number of statements, and ignores rows.
  void execute(const char* sql);

  // The first column of the first row of the host's own SQL text; 0 if there is no row.
  [[nodiscard]] std::int64_t query_integer(std::string_view sql);

 private:
  struct Close {
    void operator()(sqlite3* db) const noexcept;
  };
  std::unique_ptr<sqlite3, Close> db_;
};

// Several changes that become true together, with commit(), or not at all.
class Transaction {
 public:
  explicit Transaction(Connection& connection) : connection_(connection) {
    connection_.execute("BEGIN IMMEDIATE");
  }
  ~Transaction();
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  void commit() {
    connection_.execute("COMMIT");
    committed_ = true;
  }

 private:
  Connection& connection_;
  bool committed_ = false;
};

// Copies the content, as it is for `from`'s open transaction, to a new file, 0600.
// Failure  StorageError.
void copy_content(Connection& from, const std::filesystem::path& to);

// Writes the bytes of a WAL that was left beside `database` over themselves, so that the next sync
// brings all of them to the device. After a failed sync the system may treat pages as written that
// are only in its memory. Such pages must not be moved into the file.
//   Requires  The database is not open.
//   False     There is no WAL, or it is empty.
//   Failure   StorageError. `vfs_name`: as in ConnectionOptions.
bool write_wal_again(const std::filesystem::path& database, const std::string& vfs_name);
// The same for the first page of the database itself.
void write_first_page_again(const std::filesystem::path& database, const std::string& vfs_name);

// Brings the WAL of an open database to the device, its length included. False: the sync failed.
[[nodiscard]] bool sync_wal(sqlite3& connection);

// Makes the content of the WAL invalid, and keeps its blocks: the next writes overwrite them, and
// the file system needs no new blocks and no new length. The caller syncs the WAL afterwards.
//
// Requires   All of the WAL is in the database, and no statement reads: SQLITE_CHECKPOINT_RESTART
//            has succeeded, and the connection was not used since. SQLite then writes the next
//            commit at the WAL's start, with a header. A commit behind the old content would be
//            lost, so check wal_is_blank() after the next commit.
[[nodiscard]] bool blank_wal(sqlite3& connection);

// Whether the WAL has no header. True also if it cannot be read.
[[nodiscard]] bool wal_is_blank(sqlite3& connection);

// Whether the last call on the connection failed because the disk is full.
[[nodiscard]] bool is_full(sqlite3& connection);

// Throws StorageError or the matching subclass: "<doing>: <SQLite's message> (<extended code>) in
// <file>".
[[noreturn]] void throw_storage_error(sqlite3& connection, std::string_view doing);

}  // namespace hearth::storage
