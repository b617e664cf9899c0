#include "storage/directory_checkpointer.hpp"

#include <sqlite3.h>

#include <utility>

namespace hearth::storage {

// SQLite's methods for the open file, with one that can refuse writes to it.
struct DirectoryCheckpointer::FileMethods {
  sqlite3_io_methods ours;  // first: the file points to it
  const sqlite3_io_methods* sqlites;
  bool refuses_writes = false;

  static int write(sqlite3_file* file, const void* from, int bytes, sqlite3_int64 offset) {
    const auto* const methods = reinterpret_cast<const FileMethods*>(file->pMethods);
    if (methods->refuses_writes) return SQLITE_BUSY;
    return methods->sqlites->xWrite(file, from, bytes, offset);
  }
};

namespace {

// The wait for other connections, when a long WAL is emptied.
constexpr int kBusyTimeoutMs = 5'000;

// Each round moves the writes of the round before.
constexpr int kPassiveRounds = 4;

}  // namespace

DirectoryCheckpointer::DirectoryCheckpointer(const std::filesystem::path& path,
                                             std::function<void(const std::string&)> on_failure,
                                             const std::string& vfs)
    : connection_(path, {.create = false, .vfs = vfs}), on_failure_(std::move(on_failure)) {
  connection_.execute("PRAGMA synchronous=NORMAL");
  // A connection learns at its first read that the file has a WAL. Before that it moves nothing.
  (void)connection_.query_integer("SELECT count(*) FROM sqlite_schema");
  sqlite3_file* file = nullptr;
  if (sqlite3_file_control(&connection_.handle(), "main", SQLITE_FCNTL_FILE_POINTER,
                           static_cast<void*>(&file)) != SQLITE_OK)
    throw_storage_error(connection_.handle(), "find the open file");
  methods_ = std::make_unique<FileMethods>(FileMethods{*file->pMethods, file->pMethods});
  methods_->ours.xWrite = FileMethods::write;
  file->pMethods = &methods_->ours;
  thread_ = std::thread([this] { run(); });
}

DirectoryCheckpointer::~DirectoryCheckpointer() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  work_came_.notify_one();
  thread_.join();
}

void DirectoryCheckpointer::written(int pages) {
  if (pages < kPages) return;
  {
    const MutexLock lock(mutex_);
    pages_ = pages;
  }
  work_came_.notify_one();
}

void DirectoryCheckpointer::run() {
  for (int pages = next(); pages > 0 && checkpoint(pages); pages = next()) {
  }
}

// Waits for pages to move, and returns their number; 0: the checkpointer stops.
int DirectoryCheckpointer::next() {
  const MutexLock lock(mutex_);
  while (!stopping_ && pages_ == 0) work_came_.wait(mutex_);
  return stopping_ ? 0 : std::exchange(pages_, 0);
}

// Empties the WAL if all of it is moved; otherwise SQLITE_BUSY. `must`: moves the rest first, while
// writers wait for the device.
int DirectoryCheckpointer::empty_wal(bool must) {
  sqlite3& handle = connection_.handle();
  // While SQLite waits for a reader here, writers wait too. So it waits only if `must`.
  sqlite3_busy_timeout(&handle, must ? kBusyTimeoutMs : 0);
  if (!must) {
    methods_->refuses_writes = true;
    connection_.execute("PRAGMA synchronous=OFF");  // it moves no page, so it needs no sync
  }
  const int rc =
      sqlite3_wal_checkpoint_v2(&handle, "main", SQLITE_CHECKPOINT_TRUNCATE, nullptr, nullptr);
  methods_->refuses_writes = false;
  if (!must) connection_.execute("PRAGMA synchronous=NORMAL");
  return rc == SQLITE_OK && !sync_wal(handle) ? SQLITE_IOERR_FSYNC : rc;
}

bool DirectoryCheckpointer::checkpoint(int pages) {
  sqlite3& handle = connection_.handle();
  int rc = SQLITE_BUSY;
  // Passive: writers can write meanwhile, and each round moves the writes of the round before.
  for (int round = 0; round < kPassiveRounds && (rc & 0xff) == SQLITE_BUSY; ++round) {
    rc = sqlite3_wal_checkpoint_v2(&handle, "main", SQLITE_CHECKPOINT_PASSIVE, nullptr, nullptr);
    if (rc == SQLITE_OK) rc = empty_wal(false);
  }
  if ((rc & 0xff) == SQLITE_BUSY && pages > kLongPages) rc = empty_wal(true);
  // Busy: another connection checkpoints or reads; the next commit asks again.
  if (rc == SQLITE_OK || (rc & 0xff) == SQLITE_BUSY) return true;
  const bool sync_failed = rc == SQLITE_IOERR_FSYNC || rc == SQLITE_IOERR_DIR_FSYNC;
  on_failure_("move the WAL of " + std::string(sqlite3_db_filename(&handle, "main")) +
              " into the file: " + sqlite3_errmsg(&handle) +
              (sync_failed ? "; no retry before the next start" : "; it is retried later"));
  return !sync_failed;
}

}  // namespace hearth::storage
