#include "storage/late_wal.hpp"

#include "base/error.hpp"

#include <fcntl.h>
#include <sqlite3.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <new>

namespace hearth::storage {
namespace {

// What SQLite sees: ours, and behind it the system's own object, once the file is there.
struct LateWal {
  sqlite3_file base;
  sqlite3_vfs* system;
  const char* name;
  int flags;
};

constexpr std::size_t kSystemWalOffset =
    (sizeof(LateWal) + alignof(std::max_align_t) - 1) & ~(alignof(std::max_align_t) - 1);
static_assert(kSystemWalOffset <= kLateWalBytes);

LateWal& late(sqlite3_file* file) {
  return *reinterpret_cast<LateWal*>(file);
}

sqlite3_file* wal_of_system(sqlite3_file* file) {
  return reinterpret_cast<sqlite3_file*>(reinterpret_cast<std::byte*>(file) + kSystemWalOffset);
}

// Null: there is no file yet.
const sqlite3_io_methods* made(sqlite3_file* file) {
  return wal_of_system(file)->pMethods;
}

int close_wal(sqlite3_file* file) {
  return made(file) == nullptr ? SQLITE_OK : made(file)->xClose(wal_of_system(file));
}

int read_wal(sqlite3_file* file, void* to, int bytes, sqlite3_int64 offset) {
  if (made(file) != nullptr) return made(file)->xRead(wal_of_system(file), to, bytes, offset);
  std::memset(to, 0, static_cast<std::size_t>(bytes));
  return SQLITE_IOERR_SHORT_READ;
}

int write_wal(sqlite3_file* file, const void* from, int bytes, sqlite3_int64 offset) {
  if (made(file) == nullptr) {
    const LateWal& wal = late(file);
    if (wal.system->xOpen(wal.system, wal.name, wal_of_system(file), wal.flags, nullptr) !=
        SQLITE_OK) {
      wal_of_system(file)->pMethods = nullptr;
      return SQLITE_FULL;
    }
  }
  return made(file)->xWrite(wal_of_system(file), from, bytes, offset);
}

int truncate_wal(sqlite3_file* file, sqlite3_int64 size) {
  return made(file) == nullptr ? SQLITE_OK : made(file)->xTruncate(wal_of_system(file), size);
}

int sync_late_wal(sqlite3_file* file, int flags) {
  return made(file) == nullptr ? SQLITE_OK : made(file)->xSync(wal_of_system(file), flags);
}

int wal_size(sqlite3_file* file, sqlite3_int64* size) {
  *size = 0;
  return made(file) == nullptr ? SQLITE_OK : made(file)->xFileSize(wal_of_system(file), size);
}

int wal_control(sqlite3_file* file, int operation, void* argument) {
  if (made(file) == nullptr) return SQLITE_NOTFOUND;
  return made(file)->xFileControl(wal_of_system(file), operation, argument);
}

// No connection locks a WAL, or asks its file for the device's ways: that is the database's.
int lock_nothing(sqlite3_file*, int) {
  return SQLITE_OK;
}
int find_nothing(sqlite3_file*, int* is_reserved) {
  *is_reserved = 0;
  return SQLITE_OK;
}
int know_nothing(sqlite3_file*) {
  return 0;
}

constexpr sqlite3_io_methods kLateWalMethods = {
    .iVersion = 1,
    .xClose = close_wal,
    .xRead = read_wal,
    .xWrite = write_wal,
    .xTruncate = truncate_wal,
    .xSync = sync_late_wal,
    .xFileSize = wal_size,
    .xLock = lock_nothing,
    .xUnlock = lock_nothing,
    .xCheckReservedLock = find_nothing,
    .xFileControl = wal_control,
    .xSectorSize = know_nothing,
    .xDeviceCharacteristics = know_nothing,
    .xShmMap = nullptr,
    .xShmLock = nullptr,
    .xShmBarrier = nullptr,
    .xShmUnmap = nullptr,
    .xFetch = nullptr,
    .xUnfetch = nullptr,
};

// SQLite's own error is of its second attempt, to read a file that is not there.
bool lacks_room_for(const char* name) {
  const int fd = ::open(name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd < 0) return is_out_of_room(errno);
  ::close(fd);
  ::unlink(name);
  return false;
}

}  // namespace

int open_wal(sqlite3_vfs* system, const char* name, sqlite3_file* file, int flags, int* flags_out) {
  const int rc = system->xOpen(system, name, file, flags, flags_out);
  if ((rc & 0xff) != SQLITE_CANTOPEN || !lacks_room_for(name)) return rc;
  auto* const wal = new (static_cast<void*>(file)) LateWal{{&kLateWalMethods}, system, name, flags};
  wal_of_system(&wal->base)->pMethods = nullptr;
  if (flags_out != nullptr) *flags_out = flags;
  return SQLITE_OK;
}

}  // namespace hearth::storage
