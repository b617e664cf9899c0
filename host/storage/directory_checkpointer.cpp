#include "storage/directory_checkpointer.hpp"

#include <sqlite3.h>

#include <chrono>
#include <utility>

namespace hearth::storage {
namespace {

// Only one that empties a long WAL waits for others at all.
constexpr std::chrono::seconds kCheckpointBusyTimeout{5};

}  // namespace

DirectoryCheckpointer::DirectoryCheckpointer(const std::filesystem::path& path,
                                             std::function<void(const std::string&)> on_failure,
                                             const std::string& vfs)
    : connection_(path, {.create = false, .vfs = vfs, .busy_timeout = kCheckpointBusyTimeout}),
      on_failure_(std::move(on_failure)) {
  connection_.execute("PRAGMA synchronous=NORMAL");
  // A connection knows that the file has a WAL when it has read it once; one that does not know moves nothing.
  (void)connection_.query_integer("SELECT count(*) FROM sqlite_schema");
  thread_ = std::thread([this] { run(); });
}

DirectoryCheckpointer::~DirectoryCheckpointer() {
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
  }
  work_came_.notify_one();
  thread_.join();
}

void DirectoryCheckpointer::written(int pages) {
  if (pages < kPages) return;
  {
    const std::scoped_lock lock(mutex_);
    pages_ = pages;
  }
  work_came_.notify_one();
}

void DirectoryCheckpointer::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    work_came_.wait(lock, [this] { return stopping_ || pages_ > 0; });
    if (stopping_) return;
    const int pages = std::exchange(pages_, 0);
    lock.unlock();
    const bool go_on = checkpoint(pages);
    lock.lock();
    if (!go_on) return;
  }
}

bool DirectoryCheckpointer::checkpoint(int pages) {
  sqlite3& handle = connection_.handle();
  const int mode = pages > kLongPages ? SQLITE_CHECKPOINT_RESTART : SQLITE_CHECKPOINT_PASSIVE;
  const int rc = sqlite3_wal_checkpoint_v2(&handle, "main", mode, nullptr, nullptr);
  // Busy: another one is at it, and the next commit asks again.
  if (rc == SQLITE_OK || (rc & 0xff) == SQLITE_BUSY) return true;
  const bool sync_failed = rc == SQLITE_IOERR_FSYNC || rc == SQLITE_IOERR_DIR_FSYNC;
  on_failure_("move the WAL of " + std::string(sqlite3_db_filename(&handle, "main")) +
              " into the file: " + sqlite3_errmsg(&handle) +
              (sync_failed ? "; it is left alone until the next start" : "; tried again later"));
  return !sync_failed;
}

}  // namespace hearth::storage
