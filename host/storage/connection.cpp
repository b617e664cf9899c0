#include "storage/connection.hpp"

#include "base/assert.hpp"
#include "storage/single_owner_vfs.hpp"
#include "storage/statement.hpp"
#include "storage/wal_format.hpp"

#include <fcntl.h>
#include <sqlite3.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <system_error>
#include <vector>

namespace hearth::storage {
namespace {

void configure_library() {
  // SQLite refuses each of these if the program has used it before. It then works too, only with
  // more memory, so the results are ignored.
  sqlite3_config(SQLITE_CONFIG_MULTITHREAD);
  sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
  sqlite3_config(SQLITE_CONFIG_URI, 0);
  // Preallocate no pages. SQLite's default is 20 a connection, 88 KiB; an idle agent uses three.
  sqlite3_config(SQLITE_CONFIG_PAGECACHE, nullptr, 0, 0);
  const int rc = sqlite3_initialize();
  HEARTH_ASSERT(rc == SQLITE_OK, "SQLite cannot be initialised");
  register_single_owner_vfs();
}

void set_flag(sqlite3& db, int option, int value) {
  const int rc = sqlite3_db_config(&db, option, value, nullptr);
  HEARTH_ASSERT(rc == SQLITE_OK, "a connection option that this SQLite does not know");
}

}  // namespace

void initialize_sqlite() {
  static const bool done = [] {
    configure_library();
    return true;
  }();
  HEARTH_ASSERT(done, "configured above");
}

bool is_full(sqlite3& connection) {
  const int code = sqlite3_errcode(&connection) & 0xff;
  if (code == SQLITE_FULL) return true;
  const bool asked_system = code == SQLITE_IOERR || code == SQLITE_CANTOPEN;
  return asked_system && is_out_of_room(sqlite3_system_errno(&connection));
}

void throw_storage_error(sqlite3& connection, std::string_view doing) {
  std::string text(doing);
  text += ": ";
  text += sqlite3_errmsg(&connection);
  text += " (" + std::to_string(sqlite3_extended_errcode(&connection)) + ")";
  const char* const file = sqlite3_db_filename(&connection, "main");
  if (file != nullptr && *file != '\0') text += std::string(" in ") + file;
  const int system = sqlite3_system_errno(&connection);
  if (sqlite3_errcode(&connection) % 256 == SQLITE_CANTOPEN &&
      (system == EMFILE || system == ENFILE))
    throw OutOfDescriptors(text + ": " + std::generic_category().message(system));
  if (is_full(connection)) throw DiskFull(text);
  throw StorageError(text);
}

void Connection::Close::operator()(sqlite3* db) const noexcept {
  const int rc = sqlite3_close(db);
  HEARTH_ASSERT(rc == SQLITE_OK, "a statement outlives its connection");
}

Connection::Connection(const std::filesystem::path& path, const ConnectionOptions& options) {
  initialize_sqlite();
  sqlite3* raw = nullptr;
  int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
  if (options.create) flags |= SQLITE_OPEN_CREATE;
  const int rc = sqlite3_open_v2(path.c_str(), &raw, flags,
                                 options.vfs.empty() ? nullptr : options.vfs.c_str());
  db_.reset(raw);  // a failed open leaves an object that holds the message
  if (raw == nullptr) throw StorageError("open " + path.string() + ": out of memory");
  if (rc != SQLITE_OK) throw_storage_error(*raw, "open " + path.string());

  set_flag(*raw, SQLITE_DBCONFIG_DEFENSIVE, 1);
  set_flag(*raw, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0);
  set_flag(*raw, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0);
  set_flag(*raw, SQLITE_DBCONFIG_ENABLE_FTS3_TOKENIZER, 0);
  set_flag(*raw, SQLITE_DBCONFIG_ENABLE_FKEY, 1);
  // Misspelt identifiers are errors, not strings.
  set_flag(*raw, SQLITE_DBCONFIG_DQS_DDL, 0);
  set_flag(*raw, SQLITE_DBCONFIG_DQS_DML, 0);
  sqlite3_busy_timeout(raw, static_cast<int>(options.busy_timeout.count()));
  // Before the first read, which the next PRAGMA does and which takes the locks.
  if (options.exclusive) execute("PRAGMA locking_mode=EXCLUSIVE");
  execute(("PRAGMA cache_size=" + std::to_string(options.cache_pages)).c_str());
}

namespace {

// Writes at most `most` bytes again. False if the file does not exist or is empty.
bool write_again(const std::filesystem::path& path, int kind, sqlite3_int64 most,
                 const std::string& vfs_name) {
  initialize_sqlite();
  sqlite3_vfs* const vfs = sqlite3_vfs_find(vfs_name.empty() ? nullptr : vfs_name.c_str());
  HEARTH_ASSERT(vfs != nullptr, "a VFS that is not registered");
  std::vector<std::byte> memory(static_cast<std::size_t>(vfs->szOsFile));
  auto* const file = reinterpret_cast<sqlite3_file*>(memory.data());
  int exists = 0;
  vfs->xAccess(vfs, path.c_str(), SQLITE_ACCESS_EXISTS, &exists);
  if (exists == 0) return false;
  int rc = vfs->xOpen(vfs, path.c_str(), file, SQLITE_OPEN_READWRITE | kind, nullptr);
  sqlite3_int64 size = 0;
  if (rc == SQLITE_OK) rc = file->pMethods->xFileSize(file, &size);
  size = std::min(size, most);
  std::array<std::byte, std::size_t{64} << 10> piece;
  for (sqlite3_int64 at = 0; rc == SQLITE_OK && at < size; at += std::ssize(piece)) {
    const auto bytes = static_cast<int>(std::min<sqlite3_int64>(std::ssize(piece), size - at));
    rc = file->pMethods->xRead(file, piece.data(), bytes, at);
    if (rc == SQLITE_OK) rc = file->pMethods->xWrite(file, piece.data(), bytes, at);
  }
  if (file->pMethods != nullptr) file->pMethods->xClose(file);
  if (rc != SQLITE_OK)
    throw StorageError("write " + path.string() + " again: " + sqlite3_errstr(rc));
  return size > 0;
}

}  // namespace

void copy_content(Connection& from, const std::filesystem::path& to) {
  // SQLite would make it as the umask says.
  ::close(::open(to.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  Connection target(to, {.create = true});
  sqlite3_backup* const copying =
      sqlite3_backup_init(&target.handle(), "main", &from.handle(), "main");
  if (copying != nullptr) {
    sqlite3_backup_step(copying, -1);
    if (sqlite3_backup_finish(copying) == SQLITE_OK) return;
  }
  throw_storage_error(target.handle(), "copy a database");
}

bool write_wal_again(const std::filesystem::path& database, const std::string& vfs_name) {
  return write_again(database.native() + "-wal", SQLITE_OPEN_WAL,
                     std::numeric_limits<sqlite3_int64>::max(), vfs_name);
}

void write_first_page_again(const std::filesystem::path& database, const std::string& vfs_name) {
  constexpr sqlite3_int64 kFirstPage = 4096;
  write_again(database, SQLITE_OPEN_MAIN_DB, kFirstPage, vfs_name);
}

namespace {

// Null if the connection has no open WAL.
sqlite3_file* wal_of(sqlite3& connection) {
  sqlite3_file* wal = nullptr;
  const int rc = sqlite3_file_control(&connection, "main", SQLITE_FCNTL_JOURNAL_POINTER,
                                      static_cast<void*>(&wal));
  return rc == SQLITE_OK && wal != nullptr && wal->pMethods != nullptr ? wal : nullptr;
}

}  // namespace

bool sync_wal(sqlite3& connection) {
  sqlite3_file* const wal = wal_of(connection);
  return wal != nullptr && wal->pMethods->xSync(wal, SQLITE_SYNC_NORMAL) == SQLITE_OK;
}

bool blank_wal(sqlite3& connection) {
  static constexpr std::array<std::byte, kWalHeaderBytes> kZeros{};
  sqlite3_file* const wal = wal_of(connection);
  return wal != nullptr &&
         wal->pMethods->xWrite(wal, kZeros.data(), kWalHeaderBytes, 0) == SQLITE_OK;
}

bool wal_is_blank(sqlite3& connection) {
  std::array<std::byte, kWalHeaderBytes> header{};
  sqlite3_file* const wal = wal_of(connection);
  return wal == nullptr ||
         wal->pMethods->xRead(wal, header.data(), kWalHeaderBytes, 0) != SQLITE_OK ||
         std::ranges::all_of(header, [](std::byte byte) { return byte == std::byte{}; });
}

void Connection::execute(const char* sql) {
  if (sqlite3_exec(db_.get(), sql, nullptr, nullptr, nullptr) != SQLITE_OK)
    throw_storage_error(*db_, sql);
}

Transaction::~Transaction() {
  // Fails if there is nothing to undo any more, which does no harm.
  if (!committed_) sqlite3_exec(&connection_.handle(), "ROLLBACK", nullptr, nullptr, nullptr);
}

std::int64_t Connection::query_integer(std::string_view sql) {
  Statement statement(*db_, sql);
  Rows rows = statement.query();
  return rows.next() ? rows.integer(0) : 0;
}

}  // namespace hearth::storage
